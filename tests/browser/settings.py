"""The example site for a browser: its own pages, header, people and provider tables, on a test database.

Run with ``pytest --ds=tests.browser.settings tests/browser``.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from example_project.children import free_port
from tests.databases import sqlite

os.environ["JOBTRACK_DEMO_DIR"] = str(Path(tempfile.gettempdir()) / f"jobtrack-browser-{os.getpid()}")
os.environ["JOBTRACK_DEMO_ACME_PORT"] = str(free_port())
os.environ["ACME_TOKEN"] = "a-token-for-tests"
os.environ["ACME_WEBHOOK_SECRET"] = "whsec_" + "YWFh" * 8
# Playwright drives the browser from an event loop in the thread of the test, which is then seen as asynchronous.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"

from example_project.settings import *  # noqa: F403 - the site is set up by its environment
from example_project.settings import MIDDLEWARE as OF_THE_SITE

DATABASES = {"default": sqlite()}
MIDDLEWARE = ["tests.browser.watching.Recorder", *OF_THE_SITE]
ROOT_URLCONF = "tests.browser.urls"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
