"""Sentences of our own with fields: said in English, stored and sealed so, and read back by the same template.

Rows and the audit keep the English text for good. Who shows it in another language reads it back, so that texts of
earlier releases are translated too, and nothing is shown that the audit does not prove. The sentences themselves are
in the modules named ``sentences_*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from string import Formatter
from types import MappingProxyType, ModuleType

from jobtrack.core.observation import Kind
from jobtrack.core.operation import TERMINAL, OperationState
from jobtrack.core.place import Gap
from jobtrack.core.reply import Trouble

_NUMBER = "-?[0-9]{1,20}"
_INSTANT = "[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?"
_SPAN = f"(?:-?[0-9]{{1,9}} days?, )?{_CLOCK}"
_QUOTED = r"'(?:[^'\\]|\\.)*'" + "|" + r'"(?:[^"\\]|\\.)*"'  # as ``answer.shown`` quotes a provider's word


def _one_of(words: Iterable[str]) -> str:
    return "|".join(sorted(words))


PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("code", "count", "most", "line", "column", "index"), _NUMBER),
        "instant": f"{_INSTANT}:[0-9]{{2}} UTC",  # as ``spoken`` writes it
        "minute": rf"{_INSTANT}[+-][0-9:]{{5,15}}",  # as ``retention_said`` writes it
        "length": r"[0-9.e+-]{1,20}(?:ms|[smhd])(?: [0-9]{1,2}[smh])?",  # as ``duration`` writes it
        **dict.fromkeys(("wait", "longest"), _SPAN),  # as Python writes a ``timedelta``
        "clock": _CLOCK,
        "request": "[A-Z]{1,20}(?: [^ ]{1,300})?",  # method and address
        "host": "[^ ]{1,500}",  # or an origin
        **dict.fromkeys(("meaning", "pattern"), "[a-z0-9_-]{1,40}"),  # words of the table
        "type": "[a-z0-9.+/-]{1,140}",
        **dict.fromkeys(("shown", "near"), _QUOTED),
        "error": r"\w{1,200}",  # name of a class
        "reference": r"(?:env|file|setting|callable):[^\n]{1,1000}?",  # to a secret
        **dict.fromkeys(("state", "late"), _one_of(TERMINAL)),
        **dict.fromkeys(("before", "after"), _one_of(OperationState)),
        "trouble": _one_of(Trouble),
        "kind": _one_of(Kind),
        "gap": _one_of(Gap),
    }
)
"""What a field may hold, by its name; a field with any other name is free text."""

OURS = frozenset({"what"})
"""Free fields whose value is a sentence of ours as well, else the text around it is none of ours either."""

MAYBE_OURS = frozenset({"why"})
"""Free fields whose value may be a sentence of ours or somebody else's words."""


class Sentence:
    """One sentence, or a part of one, with named fields in braces.

    Args:
        template: in English. Every name stands once, with words between two free fields.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        self._parts = tuple((text, name) for text, name, _, _ in Formatter().parse(template))
        self.fields = tuple(name for _, name in self._parts if name)  # names, in order
        self.words = sum(len(text) for text, _ in self._parts)  # characters of its own
        self._first, self._last = self._parts[0][0], "" if self._parts[-1][1] else self._parts[-1][0]

    def __repr__(self) -> str:
        return f"Sentence({self.template!r})"

    def of(self, **values: object) -> str:
        """The sentence with its fields filled."""
        return self.template.format(**values)

    def read(self, text: str) -> Mapping[str, str] | None:
        """The fields of a text that this sentence may have made, the inverse of ``of``; None: it cannot have."""
        if not (text.startswith(self._first) and text.endswith(self._last)):
            return None
        match = self._pattern.fullmatch(text)
        return None if match is None else match.groupdict()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        source = (re.escape(text) + (_group(name) if name else "") for text, name in self._parts)
        return re.compile("".join(source), re.DOTALL)

    @property
    def opening(self) -> str:
        """Pattern of what a text begins with that this sentence made: all before its first free field."""
        source = ""
        for text, name in self._parts:
            source += re.escape(text)
            if name and name not in PATTERNS:
                break
            source += f"(?:{PATTERNS[name]})" if name else ""
        return source


def _group(name: str) -> str:
    return f"(?P<{name}>{PATTERNS.get(name, '.*?')})"


def sentences_in(*modules: ModuleType) -> tuple[Sentence, ...]:
    """Every sentence of these modules."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Sentence))
