"""Addresses."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "triage"
urlpatterns: list[URLPattern] = []
