"""Pages and pruning on a million operations beside a hundred: ``python -m benchmarks.large``.

Queries must be as many, and each answer must come within a second. It needs PostgreSQL and a user that may create
databases and switch triggers off, or MariaDB and a user that may create databases; the database is made for the run and
dropped after it. ``JOBTRACK_BENCH_DB`` is the URL of the server.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

SERVER = "postgres://postgres@127.0.0.1:5432/postgres"
SMALL = 100
BATCH = 10  # operations of a measured batch: three times as many are old enough among the hundred
LIMIT_S = 1.0
TIMES = 5

Act = Callable[[], None]
Figures = tuple[int, float]
"""Queries, and the median of some wall times in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A site with so much in it."""

    folder: Path  # for proofs

    def acts(self) -> Iterator[tuple[str, Act]]:
        """What is measured, by its name."""
        for model in ("escalation", "operation"):
            yield from self._lists(model)
        yield from self._decision_pages()
        yield from self._dashboard()
        yield f"prune, a batch of {BATCH}", self._prune(BATCH)
        yield "prune, a batch of 500", self._prune(500)

    def _lists(self, model: str) -> Iterator[tuple[str, Act]]:
        from django.urls import reverse

        url, name = (
            reverse(f"admin:jobtrack_{model}_changelist"),
            {"escalation": "needs decision", "operation": "operations"}[model],
        )
        listed = self._get(url)
        yield name, self._asks(url)
        for spec in listed.filter_specs:
            for choice in list(spec.choices(listed))[:9]:
                yield f"{name}, {spec.title}: {choice['display']}", self._asks(url + choice["query_string"])
        for number in (2, 50):
            page = self._page(url, number)
            yield f"{name}, page {number}", self._asks(url + page)
            yield f"{name}, page {number}, back", self._asks(url + (self._get(url + page).previous_link or page))
        row = listed.result_list[0]
        row = getattr(row, "operation", row)
        words = {"id": row.pk, "job id": row.job_id, "reference": row.reference, "nothing": "no-such-thing"}
        for what, word in words.items():
            yield f"{name}, search: {what}", self._asks(f"{url}?q={word}")

    def _page(self, url: str, number: int) -> str:
        """The query string of a page; of the last one if there are fewer."""
        query = "?"
        for _ in range(number - 1):
            query = self._get(url + query).next_link or query
        return query

    def _decision_pages(self) -> Iterator[tuple[str, Act]]:
        from django.urls import reverse

        from jobtrack_django.models import Escalation

        asked = Escalation.objects.open().filter(reason="unknown_state", blocking=True).order_by("provider", "pk")[0]
        arguments = {"object_id": asked.pk}
        yield "decision page", self._asks(reverse("admin:jobtrack_escalation_change", args=[asked.pk]))
        confirm = reverse("admin:jobtrack_escalation_decide", kwargs={**arguments, "option": "look_again"})
        yield "decision page, confirmation", self._asks(confirm)
        yield "operation page", self._asks(reverse("admin:jobtrack_operation_change", args=[asked.operation_id]))

    def _dashboard(self) -> Iterator[tuple[str, Act]]:
        from django.urls import NoReverseMatch, reverse

        try:
            url = reverse("admin:jobtrack_dashboard")
        except NoReverseMatch:
            print("There is no dashboard: it is not measured.")
            return
        for days in (7, 90):
            yield f"dashboard, {days} days", self._asks(f"{url}?days={days}")

    def _prune(self, batch: int) -> Act:
        from jobtrack_django.prune import Terms, prune

        def act() -> None:
            prune(Terms(older_than=timedelta(days=1), proofs=self.folder, batch=batch, limit=batch))

        return act

    def _get(self, url: str) -> Any:
        return _client().get(url).context["cl"]

    def _asks(self, url: str) -> Act:
        client = _client()

        def act() -> None:
            answer = client.get(url)
            if answer.status_code != 200:
                raise RuntimeError(f"{url} was answered {answer.status_code}.")

        return act


def _client() -> Any:
    """A person of the staff who may do everything."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    users = get_user_model().objects
    client = Client()
    client.force_login(users.filter(is_superuser=True).first() or users.create_superuser("ada"))
    return client


def measure(act: Act) -> Figures:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    act()  # what a process remembers from its first request on
    with CaptureQueriesContext(connection) as captured:
        act()
    queries = len(captured)  # before the next request forgets them
    times = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        act()
        times.append(time.perf_counter() - begun)
    return queries, statistics.median(times)


def measured(operations: int, entries: int, open_of_100: int) -> dict[str, Figures]:
    from benchmarks.site.many import Size, fill

    begun = time.monotonic()
    fill(Size(operations=operations, entries=entries, open_of_100=open_of_100))
    print(
        f"{operations:,} operations, {operations * entries:,} audit entries: made in {time.monotonic() - begun:.0f} s",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="jobtrack-bench-") as folder:
        return {name: measure(act) for name, act in Bench(folder=Path(folder)).acts()}


def report(few: dict[str, Figures], many: dict[str, Figures]) -> int:
    """Print the table; how many lines are not as they must be."""
    print(f"\n{'':<58} {'100 rows':>16}   {'all rows':>16}   {'queries':>8}")
    bad = 0
    for name, (queries, seconds) in many.items():
        before = few.get(name)
        ratio = queries / before[0] if before and not name.endswith("500") else None
        wrong = [*(["OTHER QUERIES"] if ratio not in (None, 1.0) else []), *(["TOO SLOW"] if seconds > LIMIT_S else [])]
        bad += bool(wrong)
        small = f"{before[0]:>3} q {1000 * before[1]:>8.1f} ms" if before else ""
        told = f"{ratio:.2f}" if ratio is not None else "-"
        print(f"{name[:58]:<58} {small:>16}   {queries:>3} q {1000 * seconds:>8.1f} ms   {told:>8}  {', '.join(wrong)}")
    print(
        f"\n{bad} of {len(many)} are too slow or ask more than on 100 rows"
        if bad
        else "\nAll within a second, with as many queries."
    )
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--entries", type=int, default=3, help="audit entries of each operation, at least 2")
    arguments = parser.parse_args()
    os.environ.setdefault("JOBTRACK_BENCH_DB", SERVER)
    os.environ["JOBTRACK_BENCH_NAME"] = f"jobtrack_bench_{os.getpid()}"
    os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.site.desk"
    import django

    django.setup()
    from django.db import connection
    from django.test.utils import setup_test_environment

    setup_test_environment()  # answers tell what their pages were made of
    connection.settings_dict["TEST"]["NAME"] = os.environ["JOBTRACK_BENCH_NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        few = measured(SMALL, arguments.entries, 60)
        many = measured(arguments.operations, arguments.entries, 1)
    finally:
        connection.creation.destroy_test_db(os.environ["JOBTRACK_BENCH_NAME"], verbosity=0)
    return 1 if report(few, many) else 0


if __name__ == "__main__":
    sys.exit(main())
