"""Settings, all from the environment; the defaults serve one person on one machine."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from webapp import logs
from webapp.config import environment
from webapp.pages.addresses import event_address, session_address

_env = environment.read(os.environ)
BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = _env.data

SECRET_KEY = _env.secret_key or environment.secret_key(DATA_DIR)
# What seals stored SSH keys; without it a file in the data folder: webapp/sealing.py.
SECRET_KEYS = _env.secret_keys
DEBUG = _env.debug
PUBLIC_URL = _env.public_url
_PUBLIC = urlsplit(PUBLIC_URL)
# The Host header decides where links and redirects lead, so only named hosts are served.
ALLOWED_HOSTS = sorted({"127.0.0.1", "localhost", "[::1]", _PUBLIC.hostname or "localhost"} | set(_env.hosts))
CSRF_TRUSTED_ORIGINS = [f"{_PUBLIC.scheme}://{_PUBLIC.netloc}"]
# Believed only when asked to: anybody can send these headers to a server that has no proxy before it.
BEHIND_PROXY = _env.behind_proxy
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
if _PUBLIC.scheme == "https":
    SECURE_SSL_REDIRECT = BEHIND_PROXY
    # A proxy's Host header often has no port, and that of plain http would be another one.
    SECURE_SSL_HOST = _PUBLIC.netloc if _PUBLIC.port else None
    # Those who ask from inside, past the proxy.
    SECURE_REDIRECT_EXEMPT = [r"^healthz/", r"^metrics$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    # Whether the names below this one have TLS, too, and belong on a browser's list, is not ours to say.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "template_partials.apps.SimpleAppConfig",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "webapp.accounts",
    "webapp.records",
    "webapp.review",
    "webapp.handoff",
    "webapp.notices",
    "webapp.api",
    "webapp.pages",
    "webapp.config",
    "worker",
]
MIDDLEWARE = [
    "webapp.config.requests.from_the_proxy",
    "webapp.config.requests.named",
    "webapp.api.problems.as_problems",
    "django.middleware.security.SecurityMiddleware",
    "webapp.config.security.content_security_policy",
    "webapp.config.compression.compressed_files",
    "webapp.pages.styles.joined_styles",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "webapp.config.security.limited_requests",
    "webapp.config.security.without_nul",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
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
                "webapp.pages.context.everywhere",
            ],
            "builtins": [
                "template_partials.templatetags.partials",
                "webapp.pages.templatetags.show",
                "webapp.pages.templatetags.terms",
                "webapp.pages.templatetags.measured",
                "webapp.pages.templatetags.why",
            ],
            "loaders": [
                ("template_partials.loader.Loader", ["django.template.loaders.filesystem.Loader"])
                if DEBUG
                else (
                    "template_partials.loader.Loader",
                    [("django.template.loaders.cached.Loader", ["django.template.loaders.filesystem.Loader"])],
                )
            ],
        },
    }
]

DATABASES = {"default": _env.database_url or environment.sqlite(DATA_DIR)}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    **_env.evidence_url,
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["webapp.pages.signed_in.Backend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
ACCOUNT_RATE_LIMITS = False  # tries are counted in the database: accounts.Tally
MFA_ADAPTER = "webapp.accounts.mfa.Adapter"
MFA_TOTP_ISSUER = "Peerpath"
MFA_TOTP_TOLERANCE = 1
MFA_WEBAUTHN_USER_VERIFICATION = "discouraged"  # the password was given already

ABSOLUTE_URL_OVERRIDES = {"records.diagnosissession": session_address, "records.event": event_address}

LOGIN_URL = "account:sign_in"
LOGIN_REDIRECT_URL = "session:start"

LANGUAGE_CODE = "en"
TIME_ZONE = _env.time_zone
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
SESSION_ENGINE = "webapp.accounts.session_store"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

REDIS_URL = _env.redis_url
EMBEDDED_WORKER = not REDIS_URL
# A run whose worker is silent for so long is lost; a sixth of it is how often a worker says it lives.
LEASE_S = _env.lease_s
DRAIN_S = _env.drain_s
# Redis delivers again what was not acknowledged for so long; claims make that harmless.
VISIBILITY_S = _env.visibility_s
RUNS_PER_SESSION = _env.runs_per_session
REACH_LOOPBACK = _env.reach_loopback
WEBHOOK_PRIVATE = _env.webhook_private
# Without a mail server nothing is mailed, and the pages say so.
MAIL = _env.mail_url
MAIL_ON = MAIL is not None
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
if MAIL:
    EMAIL_HOST, EMAIL_PORT = MAIL.host, MAIL.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL.user, MAIL.password
    EMAIL_USE_SSL, EMAIL_USE_TLS = MAIL.tls, MAIL.starttls
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = _env.mail_from or f"Peerpath <peerpath@{_PUBLIC.hostname}>"
# Threads share one queue and one embedded worker; processes need Redis between them.
WEB_PROCESSES = _env.web_processes
if EMBEDDED_WORKER and WEB_PROCESSES > 1:
    raise ImproperlyConfigured("PEERPATH_WEB_PROCESSES above 1 needs PEERPATH_REDIS_URL")
METRICS_TOKEN = _env.metrics_token

LOGGING = logs.configuration(level=_env.log_level, form=_env.log_format)
