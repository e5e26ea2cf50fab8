"""Settings; the rig gives database, broker and provider through the environment. All times are scaled down."""

import os

from tests.databases import by_url, sqlite

# A killed process loses nothing that it committed; only a power cut could, and there is none in these tests.
QUICK = {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"}
DATABASE = os.environ["CHAOS_DATABASE"]  # the path of a SQLite file, or the URL of a database on a server
FILE = sqlite() | {"NAME": DATABASE, "OPTIONS": sqlite()["OPTIONS"] | QUICK}
LAZY = {"CONN_MAX_AGE": 60, "OPTIONS": {"options": "-c synchronous_commit=off"}}
DATABASES = {"default": by_url(DATABASE) | LAZY if "://" in DATABASE else FILE}
SECRET_KEY = "only for tests"
USE_TZ = True
ROOT_URLCONF = "tests.chaos.project.urls"
ALLOWED_HOSTS = ["testserver"]
INSTALLED_APPS = ["django.contrib.contenttypes", "jobtrack_django"]

CELERY_BROKER_URL = os.environ["CHAOS_BROKER"]
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_DEFAULT_QUEUE = f"{os.environ['CHAOS_QUEUE']}-default"
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_TASK_ALWAYS_EAGER = CELERY_TASK_EAGER_PROPAGATES = bool(os.environ.get("CHAOS_EAGER"))
if os.environ.get("CHAOS_QUORUM"):
    CELERY_TASK_DEFAULT_QUEUE_TYPE = CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = "quorum"
    CELERY_TASK_DEFAULT_EXCHANGE_TYPE = "topic"

JOBTRACK = {
    "TABLES": [os.environ["CHAOS_TABLES"]],
    "ALLOW_LOOPBACK": True,
    "QUEUE": os.environ["CHAOS_QUEUE"],
    "SWEEP": os.environ.get("CHAOS_SWEEP", "yes") == "yes",
    "SWEEP_INTERVAL_S": 0.3,
    "HORIZON_S": float(os.environ.get("CHAOS_HORIZON_S", "2")),
    "TIMING": {"margin_s": float(os.environ.get("CHAOS_MARGIN_S", "1")), "grace_s": 2},
}
if "CHAOS_NOTICES" in os.environ:
    JOBTRACK["NOTIFIERS"] = {
        "chaos": {"kind": "callable", "path": "tests.chaos.project.followup.told", "digest_s": 3},
    }
