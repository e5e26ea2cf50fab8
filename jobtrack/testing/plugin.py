"""The pytest plugin: the fixture ``jobtrack``, for projects that use pytest-django."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def jobtrack(db: None) -> Iterator[Any]:  # noqa: ARG001 - rows are written
    """A ``jobtrack_django.testing.Rehearsal``: scripted provider, virtual time, ``run_due()``."""
    # Which app is installed is the project's choice; the plugin itself is loaded in every project.
    from importlib import import_module

    with import_module("jobtrack_django.testing").rehearsal() as here:
        yield here
