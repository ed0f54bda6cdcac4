"""Django's settings, all from the environment: TIDEPOOL_HOME and what is named here beside it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from csp.constants import NONCE, NONE, SELF

from portal import connections
from portal.environment import flag, number, text

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(text("TIDEPOOL_HOME", str(ROOT / ".tidepool"))).resolve()
PORT = number("TIDEPOOL_PORT", 8000)
DEBUG = flag("TIDEPOOL_DEBUG", default=False)
HTTPS = flag("TIDEPOOL_HTTPS", default=False)
REDIS_URL = text("TIDEPOOL_REDIS_URL", f"unix://{connections.socket_path(HOME)}")

STORE = text("TIDEPOOL_STORE", str(HOME / "store"))
OUTPUT = Path(text("TIDEPOOL_OUTPUT", str(HOME / "output")))
UPLOADS = Path(text("TIDEPOOL_UPLOADS", str(HOME / "uploads")))
UPLOAD_LIMIT = number("TIDEPOOL_UPLOAD_LIMIT", 256 * 1024 * 1024)
SIMULATION_LIMIT = number("TIDEPOOL_SIMULATION_LIMIT", 900)  # seconds that one may take
SIMULATION_MEMORY = number("TIDEPOOL_SIMULATION_MEMORY", 4 * 1024**3)
TRACES_LIMIT = number("TIDEPOOL_TRACES_LIMIT", 2 * 1024**3)  # bytes of uploaded traces together
TRACES_KEPT = number("TIDEPOOL_TRACES_KEPT", 30)  # days after they were played
POLICY = text("TIDEPOOL_POLICY", "default")
PROFILING = flag("TIDEPOOL_PROFILING", default=False)  # jobs are measured of themselves
SHARING = text("TIDEPOOL_SHARING", "off")  # of CPUs: off, proportional or tune
NODE_LEASE = float(number("TIDEPOOL_NODE_LEASE", 30))  # seconds of silence until a node is given up

SECRET_KEY = text("TIDEPOOL_SECRET_KEY", "") or connections.secret_key(HOME / "secret-key")
SECRET_KEY_FALLBACKS = text("TIDEPOOL_OLD_SECRET_KEYS", "").split()
ALLOWED_HOSTS = text("TIDEPOOL_HOSTS", "localhost,127.0.0.1,[::1]").split(",")
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if HTTPS and host != "*"]

INSTALLED_APPS = [
    "portal",
    "scheduler",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
        },
    },
]

DATABASES = {
    "default": connections.database(
        text("TIDEPOOL_DATABASE_URL", f"sqlite:///{HOME}/database.sqlite3")
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": connections.cache(REDIS_URL)}
CHANNEL_LAYERS = {"default": connections.channel_layer(REDIS_URL)}

AUTH_USER_MODEL = "portal.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
SESSION_COOKIE_NAME = "tidepool_session"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_NAME = "tidepool_csrf"
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        # Plotly and Swagger UI put style elements and attributes into the page.
        "style-src": [SELF, "'unsafe-inline'"],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = HOME / "static"
STATICFILES_DIRS: list[Path | tuple[str, Path]] = [ROOT / "static"]
_plotly = importlib.util.find_spec("plotly")  # found, not imported: that takes half a second
if _plotly and _plotly.submodule_search_locations:
    STATICFILES_DIRS.append(
        ("plotly", Path(_plotly.submodule_search_locations[0]) / "package_data")
    )
STATIC_HASHED = flag("TIDEPOOL_STATIC_HASHED", default=(STATIC_ROOT / "staticfiles.json").exists())
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if STATIC_HASHED
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_MAX_AGE = 60  # of files without a hash in their name; the others are immutable
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not STATIC_HASHED

MEDIA_ROOT = UPLOADS
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
FILE_UPLOAD_PERMISSIONS = 0o600

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "portal.api.auth.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["portal.api.parsers.BoundedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "portal.api.paging.Pages",
    "EXCEPTION_HANDLER": "portal.api.errors.answer_error",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Tidepool",
    "DESCRIPTION": "Jobs, nodes and tenants of a shared fleet of GPUs.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "JobStateEnum": "portal.choices.JobState",
        "CheckpointStateEnum": "portal.choices.CheckpointState",
        "PlacementStateEnum": "portal.choices.PlacementState",
        "SimulationStateEnum": "portal.choices.SimulationState",
    },
}

CELERY_BROKER_URL = connections.broker(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "global_keyprefix": "tidepool-",
    "socket_timeout": 30,  # seconds; a broker whose machine is gone never says so
}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "work"
CELERY_TASK_ROUTES = {
    "scheduler.tasks.tick": {"queue": "cycle"},
    "scheduler.tasks.cycle": {"queue": "cycle"},
    "scheduler.tasks.cycle_in": {"queue": "cycle"},
}
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.1}
CELERY_TASK_SOFT_TIME_LIMIT = 600
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_BEAT_SCHEDULE = {
    # A tick that waited longer than its period has been overtaken by the next one.
    "tick": {"task": "scheduler.tasks.tick", "schedule": 2.0, "options": {"expires": 2.0}},
    "sample": {"task": "scheduler.tasks.sample", "schedule": 10.0, "options": {"expires": 10.0}},
    "housekeep": {
        "task": "scheduler.tasks.housekeep",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {
        # Whoever asks for the health is told; a line for every 503 would bury the cause.
        "unasked": {
            "()": "django.utils.log.CallbackFilter",
            "callback": lambda record: "/healthz" not in record.getMessage(),
        },
    },
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["unasked"],
        }
    },
    "root": {"handlers": ["console"], "level": text("TIDEPOOL_LOG", "WARNING")},
    "loggers": {
        # Django's own handlers for these would mail admins or print a second time.
        "django": {"handlers": [], "propagate": True},
        "django.server": {"handlers": [], "propagate": True},
        "portal": {"level": text("TIDEPOOL_LOG", "INFO")},
        "scheduler": {"level": text("TIDEPOOL_LOG", "INFO")},
    },
}
