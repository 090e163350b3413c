"""Settings, all from the environment; the defaults serve one person on one machine."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from webapp.config import environment

BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = Path(environment.text("PEERPATH_DATA") or BASE_DIR / "var").absolute()

SECRET_KEY = environment.secret_key(DATA_DIR)
DEBUG = environment.flag("PEERPATH_DEBUG")
PUBLIC_URL = environment.text("PEERPATH_PUBLIC_URL", "http://127.0.0.1:8000").rstrip("/")
_PUBLIC = urlsplit(PUBLIC_URL)
# The Host header decides where links and redirects lead, so only named hosts are served.
ALLOWED_HOSTS = environment.words(
    "PEERPATH_HOSTS", tuple({"127.0.0.1", "localhost", "[::1]", _PUBLIC.hostname or "localhost"})
)
CSRF_TRUSTED_ORIGINS = [f"{_PUBLIC.scheme}://{_PUBLIC.netloc}"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "template_partials.apps.SimpleAppConfig",
    "webapp.accounts",
    "webapp.triage",
    "webapp.review",
    "webapp.handoff",
    "worker",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "webapp.config.security.content_security_policy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "webapp.config.security.limited_requests",
    "webapp.config.security.without_nul",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "webapp.config.urls"
WSGI_APPLICATION = "webapp.config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.triage.context.everywhere",
            ],
            "builtins": [
                "template_partials.templatetags.partials",
                "webapp.triage.templatetags.show",
            ],
            "loaders": [
                ("template_partials.loader.Loader", ["django.template.loaders.filesystem.Loader"])
                if DEBUG
                else (
                    "template_partials.loader.Loader",
                    [
                        (
                            "django.template.loaders.cached.Loader",
                            ["django.template.loaders.filesystem.Loader"],
                        )
                    ],
                )
            ],
        },
    }
]

DATABASES = {"default": environment.database(environment.text("PEERPATH_DATABASE_URL"), DATA_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "accounts:sign_in"
LOGIN_REDIRECT_URL = "triage:start"

LANGUAGE_CODE = "en"
TIME_ZONE = environment.text("PEERPATH_TIME_ZONE", "UTC")
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
# Served as they lie: there is nothing to collect from elsewhere.
STATIC_ROOT = BASE_DIR / "static"
WHITENOISE_AUTOREFRESH = DEBUG

# A paste of a whole dmesg or NCCL log is normal; 50 MB is the upload limit the forms name.
DATA_UPLOAD_MAX_MEMORY_SIZE = 52_428_800
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _PUBLIC.scheme == "https"
# No script of ours reads it; the token stands in the page.
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_NAME = "peerpath_session"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        # It counts wrong passwords; a flood of names must not push the counts out.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}

REDIS_URL = environment.text("PEERPATH_REDIS_URL")
EMBEDDED_WORKER = not REDIS_URL

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"tokens": {"()": "webapp.config.logs.WithoutTokens"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["tokens"]}
    },
    "root": {"handlers": ["stderr"], "level": environment.text("PEERPATH_LOG_LEVEL", "WARNING")},
}
