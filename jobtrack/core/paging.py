"""How a list goes on: where an answer names its next page (R-SUB-3)."""

from __future__ import annotations

import re
from urllib.parse import quote

from jobtrack.core import sentences_answer as say
from jobtrack.core.actions import NextPage
from jobtrack.core.locate import Answer, Found, Unreadable, read
from jobtrack.core.place import Gap
from jobtrack.core.template import CONTROL

_LONGEST = 8000
_LINK = re.compile(r"<([^<>]{0,4000})>((?:\s*;\s*(?:[^,;<>\"]|\"[^\"]*\"){0,500}){0,20})")
_NEXT = re.compile(r"(?i);\s*rel\s*=\s*(?:\"(?:[^\"]*\s)?next(?:\s[^\"]*)?\"|next)\s*(?:;|$)")


def next_of(ways: NextPage, answer: Answer) -> str | Unreadable:
    """The next page as the answer names it: a URL that nobody has judged yet, or a token; "" if there is none."""
    if ways.link:
        return linked(answer)
    place = ways.url or ways.token
    seen = Gap.ABSENT if place is None else read(place, answer)
    if isinstance(seen, Unreadable):
        return seen
    if isinstance(seen, Gap):
        return ""
    return _text(seen, ways)


def _text(seen: Found, ways: NextPage) -> str | Unreadable:
    value = seen.value
    if isinstance(value, bool) or not isinstance(value, str | int):
        return Unreadable(say.NEXT_PAGE_NEITHER.of())
    text = str(value)
    if CONTROL.search(text) or len(text) > _LONGEST:
        return Unreadable(say.NEXT_PAGE_BAD.of())
    return "" if text == ways.end else text


def linked(answer: Answer) -> str:
    """Target of the Link header with rel="next" (RFC 8288); "" if there is none."""
    for name, value in answer.headers:
        if name.lower() == "link":
            for match in _LINK.finditer(value[:_LONGEST]):
                if _NEXT.search(match[2]):
                    return match[1]
    return ""


def with_query(url: str, name: str, value: str) -> str:
    """The URL with one parameter of its query set, the others as they were."""
    bare, _, query = url.partition("?")
    name = quote(name, safe="")
    kept = [part for part in query.split("&") if part and part.partition("=")[0] != name]
    return f"{bare}?{'&'.join([*kept, name + '=' + quote(value, safe='')])}"
