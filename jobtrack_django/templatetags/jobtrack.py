"""``{% load jobtrack %}``: a box that tells how a job stands, and one word for lists."""

from __future__ import annotations

from typing import Any

from django import template

from jobtrack_django import progress
from jobtrack_django.models import Operation

register = template.Library()


@register.inclusion_tag("jobtrack/progress/box.html")
def jobtrack_progress(operation: Operation, url: str = "", result_url: str = "") -> dict[str, Any]:
    """The box of one operation.

    Args:
        operation: the row; the page says who may see it.
        url: of a ``ProgressView``, where the script asks for news. "": the box stays as it is.
        result_url: where the result is, once it is ready. "": nowhere.
    """
    return box(operation, progress.standing(operation), url=url, result_url=result_url)


@register.inclusion_tag("jobtrack/progress/status.html")
def jobtrack_status(operation: Operation) -> dict[str, Any]:
    """One word with its symbol, from the row alone: no query, however long the list."""
    words = progress.words_of(operation.state)
    return {"name": operation.state, "words": words, "symbol": progress.SYMBOLS[words.tone]}


@register.inclusion_tag("jobtrack/progress/head.html")
def jobtrack_progress_head(standing: progress.Standing | None = None) -> dict[str, Any]:
    """Style sheet and script of the boxes, for the head of a page; once a page.

    Args:
        standing: of the box of the page: then it is loaded again from time to time without JavaScript as well.
    """
    return {"standing": standing}


def box(operation: Operation, standing: progress.Standing, *, url: str, result_url: str) -> dict[str, Any]:
    """What ``jobtrack/progress/box.html`` is rendered with."""
    ready = standing.ready
    return {
        "operation": operation,
        "standing": standing,
        "url": url,
        "result_url": result_url if ready else "",
    }
