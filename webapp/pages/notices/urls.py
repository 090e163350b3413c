"""Addresses of the pages about news."""

from django.urls import path

from webapp.pages.notices import views

app_name = "notices"
S = "sessions/<uuid:session_id>/webhooks"
urlpatterns = [
    path("account/notices", views.choose, name="choose"),
    path("webhooks", views.webhooks, name="webhooks"),
    path("webhooks/<uuid:webhook_id>/remove", views.remove, name="remove"),
    path(S, views.session_webhooks, name="session_webhooks"),
    path(S + "/<uuid:webhook_id>/remove", views.session_remove, name="session_remove"),
]
