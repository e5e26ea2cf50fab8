"""Where a value is in an answer, what it must be, and how a request is written: the parts tables are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# --- where a value is (R-TABLE-4) -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Body:
    """A place in the JSON body. ``source`` is the text of the table, for messages.

    Tokens of a JSON Pointer (RFC 6901) are strings that also index arrays; those of a singular JSONPath
    (RFC 9535) are member names (str) or array indices (int, negative counts from the end).
    """

    tokens: tuple[str | int, ...]
    source: str
    pointer: bool = True


@dataclass(frozen=True, slots=True)
class Header:
    """A response header, case-insensitive; its first value."""

    name: str

    @property
    def source(self) -> str:
        return f"header {self.name}"


@dataclass(frozen=True, slots=True)
class HttpStatus:
    """The HTTP status code, an integer."""

    @property
    def source(self) -> str:
        return "HTTP status"


Locator = Body | Header | HttpStatus


# --- what a value must be --------------------------------------------------------------------------


class Gap(StrEnum):
    """Ways a value can be missing; told apart on purpose."""

    ABSENT = "absent"  # the member is not there
    NULL = "null"  # the member is there and null
    EITHER = "missing"  # absent or null


Scalar = str | int | bool
"""A state value. Types are exact: ``True`` is not ``1``, ``10.0`` is not ``10``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One test on one located value; exactly one of the test fields is set. Conditions of a rule are ANDed."""

    at: Locator
    equals: tuple[Scalar, ...] = ()  # any of these, exact type
    fold: bool = False  # compare strings by casefold
    gap: Gap | None = None
    present: bool | None = None  # True: there and not null; False: absent or null
    empty: bool | None = None  # "", [] or {} (True) / there and not empty (False)
    above: int | None = None  # a number greater than
    same_as: Locator | None = None  # equals another value of the same answer, exact type


# --- the request ------------------------------------------------------------------------------------


class BodyKind(StrEnum):
    NONE = "none"
    JSON = "json"
    FORM = "form"
    GRAPHQL = "graphql"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpec:
    """A request as the table writes it. Placeholders: ``{job_id}``, ``{+job_id}`` (keeps slashes), parameters.

    In ``path``, ``query`` and ``headers`` a placeholder is quoted for its place; in a body it must be a whole leaf.
    """

    method: str = "GET"
    path: str = ""  # "": the operation's stored status URL is the address
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body_kind: BodyKind = BodyKind.NONE
    body: object = None  # JSON value | mapping of form fields | {"query": ..., "variables": ...}
