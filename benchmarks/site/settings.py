"""One database, one broker, one provider for both contenders; the benchmark names them in the environment."""

import os
from pathlib import Path

from tests.databases import by_url, sqlite

_URL = os.environ.get("JOBTRACK_BENCH_DB", "sqlite")
DATABASES = {"default": sqlite() if _URL == "sqlite" else by_url(_URL)}
DATABASES["default"]["NAME"] = os.environ.get("JOBTRACK_BENCH_NAME", DATABASES["default"]["NAME"])
if _URL != "sqlite":
    DATABASES["default"]["OPTIONS"] = {"pool": {"min_size": 2, "max_size": 20}} if "postgres" in _URL else {}

SECRET_KEY = "only for a benchmark"  # noqa: S105 - nobody logs in
USE_TZ = True
INSTALLED_APPS = ["django.contrib.contenttypes", "jobtrack_django", "benchmarks.site.naive"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PORT = os.environ.get("JOBTRACK_BENCH_PORT", "0")

CELERY_BROKER_URL = os.environ.get("JOBTRACK_BENCH_BROKER", "memory://")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "naive"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True

JOBTRACK = {
    "TABLES": [str(Path(__file__).with_name("tables"))],
    "ACCOUNTS": {"bench": {"default": {"port": PORT}}},
    "ALLOW_LOOPBACK": True,
}
