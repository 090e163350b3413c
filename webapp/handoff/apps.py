import logging

from django.apps import AppConfig

from webapp.logs import WithoutTokens


class HandoffConfig(AppConfig):
    name = "webapp.handoff"

    def ready(self) -> None:
        """The server in front of Django has handlers of its own, and names addresses too."""
        logging.getLogger("gunicorn.error").addFilter(WithoutTokens())
