"""What a stored submission says: parts of the payload, read back out of the very bytes (INV-17).

The payload itself is kept nowhere else. A client-chosen id or a look-up may need a part of it after the submission.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from jobtrack.core.place import BodyKind, RequestSpec
from jobtrack.core.sealed import SubmitBytes
from jobtrack.core.template import LEAF, PLACEHOLDER


def recovered(spec: RequestSpec, sent: SubmitBytes | None) -> Mapping[str, object]:
    """Parts of the payload by JSON Pointer, as far as the request shows them. Never raises.

    Args:
        spec: How the table writes the submission now; what it no longer fits is left out.
        sent: The submission; None: it is not kept any more.
    """
    if sent is None:
        return {}
    found: dict[str, object] = {}
    parts = urlsplit(sent.url)
    for template, text in (*_path(spec.path, parts.path), *_named(spec.query, parts.query), *_headers(spec, sent)):
        found.update(_text(template, text))
    found.update(_body(spec, sent.body))  # last: a body keeps the JSON types
    return found


def _text(template: str, text: str) -> Iterator[tuple[str, str]]:
    """The pointer and the text of a template with exactly one placeholder."""
    placeholders = list(PLACEHOLDER.finditer(template))
    if len(placeholders) != 1 or placeholders[0]["pointer"] is None:
        return
    before, after = template[: placeholders[0].start()], template[placeholders[0].end() :]
    if len(text) > len(before) + len(after) and text.startswith(before) and text.endswith(after):
        yield placeholders[0]["pointer"], text[len(before) : len(text) - len(after)]


def _path(template: str, path: str) -> Iterator[tuple[str, str]]:
    templates, segments = _segments(template), path.split("/")
    if len(templates) == len(segments):
        yield from ((part, unquote(segment)) for part, segment in zip(templates, segments, strict=True))


def _segments(template: str) -> list[str]:
    """Path segments of a template; a slash inside a placeholder ends none."""
    marked = PLACEHOLDER.sub(lambda match: match[0].replace("/", "\x00"), template)
    return [segment.replace("\x00", "/") for segment in marked.split("/")]


def _named(templates: tuple[tuple[str, str], ...], query: str) -> Iterator[tuple[str, str]]:
    texts = dict(parse_qsl(query, keep_blank_values=True))
    yield from ((template, texts[name]) for name, template in templates if name in texts)


def _headers(spec: RequestSpec, sent: SubmitBytes) -> Iterator[tuple[str, str]]:
    texts = {name.lower(): text for name, text in sent.headers}
    yield from ((template, texts[name.lower()]) for name, template in spec.headers if name.lower() in texts)


def _body(spec: RequestSpec, body: bytes) -> Iterator[tuple[str, object]]:
    if spec.body_kind is BodyKind.NONE:
        return
    if spec.body_kind is BodyKind.FORM:
        fields = dict(parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True))
        yield from _leaves(spec.body, fields)
        return
    try:
        value = json.loads(body)
    except ValueError:
        return
    yield from _leaves(spec.body, value)


def _leaves(template: object, value: object) -> Iterator[tuple[str, object]]:
    match template:
        case str():
            leaf = LEAF.fullmatch(template)
            if leaf is not None and leaf["pointer"] is not None:
                yield leaf["pointer"], value
        case Mapping() if isinstance(value, dict):
            for name, item in template.items():
                if name in value:
                    yield from _leaves(item, value[name])
        case list() | tuple() if isinstance(value, list) and len(template) == len(value):
            for item, seen in zip(template, value, strict=True):
                yield from _leaves(item, seen)
