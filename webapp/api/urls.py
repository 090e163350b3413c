"""Addresses. Who is signed in with a browser is nobody here: operations ask for a token themselves."""

from django.contrib.auth.decorators import login_not_required
from django.urls import path

from webapp.api.api import api

_found, _app_name, _namespace = api.urls
for _entry in _found:
    if _entry.callback is not None:
        login_not_required(_entry.callback)

urlpatterns = [path("api/v1/", (_found, _app_name, _namespace))]
