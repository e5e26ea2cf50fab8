"""A site with an admin, for ``benchmarks.large``; the database is named in the environment."""

import os
from pathlib import Path

from tests.databases import by_url
from tests.settings import MIDDLEWARE, TEMPLATES

DATABASES = {"default": by_url(os.environ["JOBTRACK_BENCH_DB"])}
DATABASES["default"]["NAME"] = os.environ["JOBTRACK_BENCH_NAME"]

SECRET_KEY = "only for a benchmark"  # noqa: S105 - nobody logs in from outside
USE_TZ = True
ROOT_URLCONF = "tests.urls"
STATIC_URL = "static/"
ALLOWED_HOSTS = ["testserver"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "jobtrack_django",
]
MIDDLEWARE = [*MIDDLEWARE]
TEMPLATES = [*TEMPLATES]

JOBTRACK = {
    "TABLES": [str(Path(__file__).with_name("tables"))],
    "ACCOUNTS": {"bench": {"default": {"port": "1"}}},
    "ALLOW_LOOPBACK": True,
}
