"""Handlers that write an effect, and a worker process that runs one of them and may be killed right after its commit.

The effect is one more letter in the operation's reference: the row is in the database of the receipt.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime

from celery import shared_task
from django.conf import settings
from django.db.models import Value
from django.db.models.functions import Concat

seen: list[tuple[str, str] | None] = []


def add(operation_id: str) -> None:
    from jobtrack_django.models import Operation

    Operation.objects.filter(pk=operation_id).update(reference=Concat("reference", Value("x")))


def with_receipt(operation) -> None:
    """The effect, once."""
    from jobtrack_django import current_delivery, once

    delivery = current_delivery()
    seen.append(delivery and (delivery.id, delivery.event))
    with once() as first:
        if first:
            add(operation.pk)
    end_here()


def without_receipt(operation) -> None:
    """The effect, as often as the handler runs."""
    add(operation.pk)
    end_here()


def failing(operation) -> None:
    """Raises after its effect, inside of the transaction."""
    from jobtrack_django import once

    with once() as first:
        if first:
            add(operation.pk)
        raise RuntimeError("no room")


@shared_task(name="tests.add_once")
def task(operation_id) -> None:
    """The same for a Celery task, which is told the id alone."""
    from jobtrack_django import current_delivery, once

    delivery = current_delivery()
    seen.append(delivery and (delivery.id, delivery.event))
    with once() as first:
        if first:
            add(operation_id)


def end_here() -> None:
    """Killed: what was committed stays, and nothing else happens."""
    if os.environ.get("JOBTRACK_TEST_KILL") == "after the commit":
        os.kill(os.getpid(), signal.SIGKILL)


def main(delivery_id: str) -> int:
    """Deliver once, as a worker does, on the database that the environment names."""
    import django

    settings.DATABASES["default"]["NAME"] = os.environ["JOBTRACK_TEST_NAME"]
    django.setup()
    from jobtrack.catalog import load_text
    from jobtrack.flow.deliver import deliver
    from jobtrack.testing.clock import VirtualClock
    from jobtrack.testing.provider import FakeProvider
    from jobtrack.testing.runtime import memory_runtime
    from jobtrack_django.runtime import run_handler
    from jobtrack_django.store import DjangoStore
    from tests.django.conftest import YAML

    clock = VirtualClock(datetime.now(UTC))
    runtime = memory_runtime(
        load_text(YAML, "acme.yaml"),
        provider=FakeProvider(clock),
        clock=clock,
        store=DjangoStore(),
        run_handler=run_handler,
    )
    return 0 if deliver(runtime, [delivery_id]) == 1 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
