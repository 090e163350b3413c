"""Addresses, by app."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [
    path("", include("webapp.triage.urls")),
    path("", include("webapp.accounts.urls")),
    path("", include("webapp.review.urls")),
    path("", include("webapp.handoff.urls")),
]
