"""Settings of the example site. The demo gives it free ports, a directory and a token through the environment."""

import os
from pathlib import Path

import django

from example_project import acme
from example_project.scenarios import ACCOUNTS

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = Path(os.environ.get("JOBTRACK_DEMO_DIR", BASE_DIR / "var"))
"""Where the database, the results and the logs are."""

ACME_PORT = os.environ.get("JOBTRACK_DEMO_ACME_PORT", "8100")
"""Where on loopback the simulated provider listens."""

SITE_URL = os.environ.get("JOBTRACK_DEMO_SITE", "http://127.0.0.1:8000")
"""What stands in front of links in notices."""

# Good for an example on loopback only: a real site keeps its key out of the repository.
SECRET_KEY = os.environ.get("JOBTRACK_DEMO_SECRET_KEY", "an-example-is-not-a-secret")
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "jobtrack_django",
    "example_project.reports",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "example_project.security.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",  # the admin and the progress box speak the browser's language
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "reports:list"
LOGOUT_REDIRECT_URL = "login"
STATIC_URL = "static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": VAR / "media"}},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    # Where results are put. A provider chose what is in them, so no web server serves this folder.
    "jobtrack": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": VAR / "results"}},
}
LANGUAGES = [
    ("de", "Deutsch"),
    ("en", "English"),
    ("es", "español"),
    ("fr", "français"),
    ("pt-br", "português (Brasil)"),
    ("zh-hans", "简体中文"),
]
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Mail is written to files, so that a notice can be read and its link opened.
MAIL = VAR / "mail"
_FILES = "django.core.mail.backends.filebased.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": _FILES, "OPTIONS": {"file_path": str(MAIL)}}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = _FILES, str(MAIL)

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": VAR / "example.sqlite3",
        "OPTIONS": {
            # A site and several worker threads write: readers never block (WAL), and a writer takes its turn at the
            # start of a transaction instead of failing in the middle of it (IMMEDIATE).
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    },
}

CELERY_BROKER_URL = os.environ.get("JOBTRACK_DEMO_BROKER", "redis://127.0.0.1:6379/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A broker that does not answer may cost a page two seconds, never more.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 2,
    "socket_connect_timeout": 1,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
}
CELERY_TASK_IGNORE_RESULT = True

JOBTRACK = {
    "TABLES": [BASE_DIR / "example_project" / "providers"],
    "ACCOUNTS": {table: {name: {"port": ACME_PORT} for name in accounts} for table, accounts in ACCOUNTS.items()},
    "CREDENTIALS": {table: dict.fromkeys(accounts, "env:ACME_TOKEN") for table, accounts in ACCOUNTS.items()},
    "WEBHOOKS": {acme.CALLING: {"default": ["env:ACME_WEBHOOK_SECRET"]}},
    "SITE_URL": SITE_URL,
    "NOTIFIERS": {
        "desk": {"kind": "email", "to": ["operator@example.com"], "from": "jobtrack@example.com", "digest_s": 10},
    },
    "RESULT_SPOOL": VAR / "spool",  # for downloads under way
    "ALLOW_LOOPBACK": True,  # the provider is a simulator on this machine
    "TIMING": {"grace_s": 5},  # a lost message is noticed soon: nobody wants to watch a demo wait
    "LIMITS": {"connect_s": 1, "read_s": 2, "total_s": 2},  # short, so that the endless answer ends soon
}
