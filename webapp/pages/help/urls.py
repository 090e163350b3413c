"""Addresses of the help. webapp.config.urls adds help/api."""

from django.urls import path

from webapp.pages.help import views

app_name = "help"
urlpatterns = [path("help", views.index, name="index"), path("help/<slug:slug>", views.page, name="page")]
