from django.apps import AppConfig


class HandoffConfig(AppConfig):
    name = "webapp.handoff"
