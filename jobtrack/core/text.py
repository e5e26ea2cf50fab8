"""Provider text is hostile: it is made storable, bounded and free of secrets first (R-SEC-4, R-AUDIT-3)."""

from __future__ import annotations

import re

MASK = "***"
"""What stands where a secret was."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BREAKS = re.compile("[\t\n\v\f\r\x85\u2028\u2029]")
# Terminal escapes as a whole, other controls, bidirectional controls, characters without width, lone surrogates.
_UNREADABLE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    "|[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def storable(text: str) -> str:
    """The text with NUL and lone surrogates replaced: every database takes it, nothing else changes."""
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def clean(text: str, limit: int = 500) -> str:
    """One readable line that every database and terminal takes.

    Line breaks and tabs become spaces; control characters, terminal escapes, bidirectional controls and lone
    surrogates become U+FFFD. Always encodes to UTF-8.

    Args:
        text: Anything.
        limit: Most characters of the result, at least 1. A longer text ends with an ellipsis.
    """
    line = _UNREADABLE.sub(_REPLACEMENT, _BREAKS.sub(" ", text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


# All patterns are linear: every repeat is bounded or starts where no other match could have begun.
_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]{0,19}://)([^\s?#<>\"'`]*)([?#]?)[^\s<>\"'`]*")
_SCHEME = re.compile(r"(?i)\b(bearer\s{1,5})[^\s\"',;<>]+|\b(basic\s{1,5})(?!(?-i:[a-z])+\b)[a-z0-9+/]{6,}={0,2}")
_NAMED = re.compile(
    r"(?i)((?:token(?!s)|secret|passw(?:or)?d|api[_-]?key|access[_-]?key|private[_-]?key|signature|credential"
    r"|authorization|cookie|(?<![a-z0-9])(?:sig|pwd|key(?=\s?=)))[\w-]{0,20}[\"']?\s{0,3}[=:]\s{0,3}[\"']?)"
    r"(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,5})?[^\s\"'&,;<>}]+"
)
_KNOWN = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}\.[\w.-]+|sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[a-z]-[\w-]{10,}"
    r"|AKIA[A-Z0-9]{16})"
)


def redact(text: str) -> str:
    """The text without secrets; scheme, host and path of URLs stay. Idempotent.

    Queries, fragments and user information of URLs, bearer and basic credentials, values of names like ``token``
    or ``signature``, and keys with a well-known shape are masked. Two texts that differ only in a signature
    become equal.
    """
    bare = _URL.sub(_bare_url, text)
    bare = _NAMED.sub(rf"\g<1>{MASK}", bare)
    bare = _SCHEME.sub(lambda match: (match[1] or match[2]) + MASK, bare)
    return _KNOWN.sub(MASK, bare)


def _bare_url(match: re.Match[str]) -> str:
    scheme, place, mark = match.groups()
    authority, slash, path = place.partition("/")
    return scheme + authority.rpartition("@")[2] + slash + path + (mark and mark + MASK)


def tell(text: str, limit: int = 500) -> str:
    """Provider text fit for a message, a row, a log line or the audit: redacted, then cleaned."""
    return clean(redact(text), limit)
