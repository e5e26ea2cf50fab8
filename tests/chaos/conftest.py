"""Brokers and projects for the chaos tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chaos.rig import RABBIT, Rabbit, Rig, Valkey, answers, rig_on


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def rabbit() -> Rabbit:
    parts = urlsplit(RABBIT)
    if not answers(parts.port or 5672, parts.hostname or "127.0.0.1"):
        message = "RabbitMQ does not answer; JOBTRACK_TEST_RABBITMQ names another one"
        pytest.fail(message) if os.environ.get("JOBTRACK_REQUIRE_SERVICES") == "1" else pytest.skip(message)
    return Rabbit()


@pytest.fixture
def rig(tmp_path: Path, valkey: Valkey) -> Iterator[Rig]:
    with rig_on(tmp_path, valkey) as rig:
        yield rig
