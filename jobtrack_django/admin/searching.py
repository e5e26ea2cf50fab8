"""What the search of a list finds: whole ids, jobs and references, each looked up by an index of its own.

One condition with OR over three columns, or a pattern, would read the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobtrack_django.models import Escalation, Operation, WebhookReceipt
from jobtrack_django.storable import storable

HELP: Final = lazy(
    "The whole id, job id or reference, exactly as it is written. “id:”, “job:” or “ref:” before it says which it is."
)

HELP_QUESTIONS: Final = lazy(
    "The whole id, job id or reference of an operation, exactly as it is written, or the number of a question. “id:”, "
    "“job:” or “ref:” before it says which it is."
)

MOST: Final = 100
"""Most rows of a search, for each of its look-ups: many operations may have one reference."""

_COLUMNS: Final = {"id": "pk", "job": "job_id", "ref": "reference"}
"""What each prefix looks into: columns that start an index."""

_LARGEST: Final = 2**63 - 1


def operations(using: str, term: str) -> list[str]:
    """Ids of the operations that a search means.

    A prefix may also be the beginning of an id that somebody made: then both meanings are looked up.
    """
    term = storable(term.strip())
    if not term:
        return []
    wanted = [(column, term) for column in _COLUMNS.values()]
    prefix, colon, rest = term.partition(":")
    if colon and prefix.lower() in _COLUMNS and rest.strip():
        wanted.append((_COLUMNS[prefix.lower()], rest.strip()))
    rows = Operation.objects.using(using).order_by()
    found = (rows.filter(**{column: text}).values_list("pk", flat=True)[:MOST] for column, text in wanted)
    return list(dict.fromkeys(pk for keys in found for pk in keys))


def questions(using: str, term: str) -> list[int]:
    """Numbers of the questions that a search means: those of its operations, and the one with this number."""
    rows = Escalation.objects.using(using).order_by()
    about = operations(using, term)
    found = list(rows.filter(operation__in=about).values_list("pk", flat=True)[:MOST]) if about else []
    return list(dict.fromkeys([*_number(term), *found]))


def receipts(using: str, term: str) -> list[int]:
    """Keys of the webhooks that a search means: by the job they name, or by the operation."""
    rows = WebhookReceipt.objects.using(using).order_by()
    about = operations(using, term)
    jobs = list(Operation.objects.using(using).filter(pk__in=about).exclude(job_id="").values_list("job_id", flat=True))
    plain = storable(term.strip())
    wanted = (("job_id__in", [*jobs, plain]), ("operation_id__in", [*about, plain]))
    found = (rows.filter(**{column: keys}).values_list("pk", flat=True)[:MOST] for column, keys in wanted)
    return list(dict.fromkeys(pk for keys in found for pk in keys))


def _number(term: str) -> Iterator[int]:
    """The number of a question, with or without "#" before it."""
    digits = term.strip().removeprefix("#")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and int(digits) <= _LARGEST:
        yield int(digits)


def found(
    request: HttpRequest, rows: QuerySet[Any], term: str, look_up: Callable[[str, str], list[Any]], column: str = "pk"
) -> QuerySet[Any]:
    """The rows of a list that a search means; all of them if it is empty. Says so if there are more."""
    if not term.strip():
        return rows
    keys = look_up(rows.db, term)
    if len(keys) >= MOST and request.method == "GET":
        messages.warning(request, _("Very many rows are found: only %(number)d of them are listed.") % {"number": MOST})
    return rows.filter(**{f"{column}__in": keys[:MOST]})
