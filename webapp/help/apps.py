from django.apps import AppConfig


class HelpConfig(AppConfig):
    name = "webapp.help"
