"""Django's command line for Peerpath; `./run CMD` calls it inside the project's environment."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        bool(settings.DEBUG)  # reads the settings, so that a bad one is a sentence here
    except ImproperlyConfigured as problem:
        sys.exit(f"Peerpath cannot start: {problem}")
    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except OperationalError as problem:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"The database cannot be used: {problem}")
    except BrokenPipeError:  # `… | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)  # as a shell reports a program that SIGPIPE ended


if __name__ == "__main__":
    main()
