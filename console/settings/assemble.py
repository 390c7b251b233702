"""Assembles Django's settings from `Config`: pure, but for the key that local mode makes once."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from console.settings.config import Config
from console.settings.home import read_or_make_secret
from console.settings.openapi import SPECTACULAR_SETTINGS
from console.settings.schedule import BEAT_SCHEDULE, TASK_ROUTES
from console.settings.sections import Queue

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "rest_framework",
    "drf_spectacular",
    "console.base.common",
    "console.base.limits",
    "console.base.accounts",
    # Behind accounts, whose command `createsuperuser` is run in the place of its own.
    "django.contrib.auth",
    "provisioning",
    "metering",
    "billing",
    "console.incidents",
    "console.alerts",
    "console.web",
]
MIDDLEWARE = [
    "console.base.common.requests.request_id_middleware",
    "console.base.common.metrics.metrics_middleware",
    "console.base.common.compression.compression_middleware",
    "console.web.watching.digest_middleware",
    "django.middleware.security.SecurityMiddleware",
    "console.base.accounts.middleware.CookieKeepingSessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
HSTS_SECONDS = 365 * 24 * 3600


def django_settings(config: Config) -> dict[str, Any]:
    """Returns all of Django's settings by name. `FRESHET` is the `Config` itself."""
    secret_key = config.secret_key or read_or_make_secret(config.secret_key_file)
    return {
        "FRESHET": config,
        "SECRET_KEY": secret_key,
        "DEBUG": False,
        "INSTALLED_APPS": INSTALLED_APPS,
        "MIDDLEWARE": MIDDLEWARE,
        "ROOT_URLCONF": "console.urls",
        "ASGI_APPLICATION": "console.asgi.application",
        "TEMPLATES": [],
        "AUTH_USER_MODEL": "accounts.User",
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "DATABASES": databases(config),
        "USE_TZ": True,
        "TIME_ZONE": "UTC",
        "LANGUAGE_CODE": "en",
        "USE_I18N": False,
        "APPEND_SLASH": False,
        "PASSWORD_RESET_TIMEOUT": 3600,
        "AUTH_PASSWORD_VALIDATORS": PASSWORD_VALIDATORS,
        "PASSWORD_HASHERS": ["console.base.accounts.hashers.PasswordHasher"],
        "DATA_UPLOAD_MAX_MEMORY_SIZE": 2 * 1024 * 1024,
        "REST_FRAMEWORK": REST_FRAMEWORK,
        "SPECTACULAR_SETTINGS": SPECTACULAR_SETTINGS,
        "LOGGING": logging(config),
        "TEST_RUNNER": "django.test.runner.DiscoverRunner",
        **web_security(config),
        **mail(config),
        **celery(config.queue),
    }


def databases(config: Config) -> dict[str, Any]:
    """Returns two connections to one database: `default` serves, `owner` migrates."""
    database = config.database
    common: dict[str, Any] = {
        "ENGINE": "console.base.common.database",
        "NAME": database.name,
        "HOST": database.host,
        "PORT": database.port,
        # Under ASGI each request has a thread of its own: a connection that is kept would leak.
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            "connect_timeout": database.connect_timeout_s,
            "sslmode": database.sslmode,
            "application_name": "freshet",
        },
    }
    served = {**common, "USER": database.app_user, "PASSWORD": database.app_password}
    if database.pool_max:
        # A new connection costs more than most requests' queries.
        pool = {"min_size": 1, "max_size": database.pool_max, "timeout": database.connect_timeout_s}
        served["OPTIONS"] = {**common["OPTIONS"], "pool": pool}
    return {
        "default": served,
        "owner": {
            **common,
            "USER": database.owner_user,
            "PASSWORD": database.owner_password,
        },
    }


def web_security(config: Config) -> dict[str, Any]:
    """Returns the settings of hosts, cookies and transport; https where the public address is."""
    https = urlsplit(config.web.public_url).scheme == "https"
    settings: dict[str, Any] = {
        "ALLOWED_HOSTS": list(config.web.allowed_hosts),
        "CSRF_TRUSTED_ORIGINS": [config.web.public_url],
        "SESSION_COOKIE_NAME": "freshet_session",
        "SESSION_COOKIE_AGE": config.web.session_days * 24 * 3600,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_COOKIE_SECURE": https,
        "CSRF_COOKIE_NAME": "freshet_csrf",
        # The session endpoint gives the token in its body.
        "CSRF_COOKIE_HTTPONLY": True,
        "CSRF_FAILURE_VIEW": "console.base.common.api.problems.csrf_failure",
        "CSRF_COOKIE_SAMESITE": "Lax",
        "CSRF_COOKIE_SECURE": https,
        "SECURE_CONTENT_TYPE_NOSNIFF": True,
        "SECURE_REFERRER_POLICY": "same-origin",
        "SECURE_CROSS_ORIGIN_OPENER_POLICY": "same-origin",
        "SECURE_SSL_REDIRECT": https,
        # Health probes come from inside the network, without TLS.
        "SECURE_REDIRECT_EXEMPT": [r"^healthz$", r"^readyz$"],
        "SECURE_HSTS_SECONDS": HSTS_SECONDS if https else 0,
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": https,
        "SECURE_HSTS_PRELOAD": https,
        "X_FRAME_OPTIONS": "DENY",
    }
    if config.web.behind_proxy:
        settings["SECURE_PROXY_SSL_HEADER"] = ("HTTP_X_FORWARDED_PROTO", "https")
    return settings


def mail(config: Config) -> dict[str, Any]:
    """Returns Django's settings of e-mail: SMTP, or a folder with one .eml file for each mail."""
    backends = {
        "folder": "console.base.common.mail.FolderBackend",
        "smtp": "console.base.common.mail.SmtpBackend",
    }
    return {
        "EMAIL_BACKEND": backends[config.mail.backend],
        "EMAIL_HOST": config.mail.host,
        "EMAIL_PORT": config.mail.port,
        "EMAIL_HOST_USER": config.mail.user,
        "EMAIL_HOST_PASSWORD": config.mail.password,
        "EMAIL_USE_TLS": config.mail.starttls,
        "EMAIL_TIMEOUT": 10,
        "DEFAULT_FROM_EMAIL": config.mail.sender,
    }


def celery(queue: Queue) -> dict[str, Any]:
    """Returns Celery's settings.

    A task is acknowledged after it ran, so that the tasks of a killed worker run again.
    """
    # A request enqueues its tasks after its commit. Where the broker does not answer, the request
    # does not wait: the sweep of the outbox enqueues them later.
    options: dict[str, Any] = {"max_retries": 0}
    if queue.url.startswith("redis"):
        options |= {
            "visibility_timeout": queue.visibility_timeout_s,
            "unacked_restore_throttle": 1,
            "socket_connect_timeout": 2,
            "socket_timeout": 5,
        }
    return {
        "CELERY_BROKER_URL": queue.url,
        "CELERY_BROKER_TRANSPORT_OPTIONS": options,
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
        "CELERY_TASK_IGNORE_RESULT": True,
        "CELERY_TASK_TIME_LIMIT": queue.visibility_timeout_s - 10,
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
        "CELERY_TIMEZONE": "UTC",
        "CELERY_BEAT_SCHEDULE": BEAT_SCHEDULE,
        "CELERY_TASK_ROUTES": TASK_ROUTES,
    }


def logging(config: Config) -> dict[str, Any]:
    """Returns Django's settings of logging: one line for each event, on standard error."""
    formatters = {
        "text": "console.base.common.logs.TextFormatter",
        "json": "console.base.common.logs.JsonFormatter",
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "request": {"()": "console.base.common.requests.RequestIdFilter"},
            "suspicious": {"()": "console.base.common.logs.SuspiciousFilter"},
        },
        "formatters": {
            "line": {"()": formatters[config.log.format]},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "line",
                "filters": ["request", "suspicious"],
            },
        },
        "root": {"handlers": ["stderr"], "level": config.log.level.upper()},
        "loggers": {
            "django": {"level": "INFO"},
            # Otherwise every 4xx of the API would be logged as a warning.
            "django.request": {"level": "ERROR"},
            # Otherwise every step of every page of an invoice would be logged.
            "weasyprint": {"level": "WARNING"},
            "fontTools": {"level": "WARNING"},
        },
    }


PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in [
        ("MinimumLengthValidator", {"min_length": 10}),
        ("CommonPasswordValidator", {}),
        ("NumericPasswordValidator", {}),
    ]
]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "console.base.accounts.api.authentication.ApiKeyAuthentication",
        "console.base.accounts.api.authentication.ConsoleSessionAuthentication",
    ],
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_PERMISSION_CLASSES": ["console.base.common.api.permissions.ActorMay"],
    "DEFAULT_RENDERER_CLASSES": ["console.base.common.api.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["console.base.common.api.parsers.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "console.base.common.api.pagination.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "console.base.common.api.schema.Schema",
    "EXCEPTION_HANDLER": "console.base.common.api.problems.handle_error",
    "UNAUTHENTICATED_USER": None,
    # `format` is a query parameter of this API, and not the renderer's name.
    "URL_FORMAT_OVERRIDE": None,
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "COERCE_DECIMAL_TO_STRING": True,
}
