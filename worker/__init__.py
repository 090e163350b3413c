"""The hands: the Celery app, thin tasks, the runner and the reconciler."""
