from django.apps import AppConfig


class WorkerConfig(AppConfig):
    name = "worker"

    def ready(self) -> None:
        from webapp.config import checks  # noqa: F401 (registers itself)
