"""Addresses of the scripts for other hands."""

from __future__ import annotations

from django.urls import path

from webapp.handoff import views

app_name = "handoff"
urlpatterns = [
    path("sessions/<uuid:session_id>/script/<str:role>", views.script, name="script"),
]
