"""Addresses."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "handoff"
urlpatterns: list[URLPattern] = []
