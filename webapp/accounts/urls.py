"""Addresses."""

from __future__ import annotations

from django.urls import path

from webapp.accounts import views

app_name = "accounts"
urlpatterns = [
    path("welcome/<str:token>", views.welcome, name="welcome"),
    path("sign-in", views.sign_in, name="sign_in"),
    path("sign-out", views.sign_out, name="sign_out"),
    path("people", views.people, name="people"),
]
