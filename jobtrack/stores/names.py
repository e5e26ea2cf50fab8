"""Names of stored files: what a provider calls a file is only a wish (R-SEC-4)."""

from __future__ import annotations

import re
import unicodedata

LONGEST_NAME = 100

_LONGEST_ENDING = 20
# Separators and drive letters of any system, what shells and Windows refuse, controls, directions, lone surrogates.
_BAD = re.compile('[\\\\/:*?"<>|\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]')
_DEVICE = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)")


def clean_name(name: str) -> str:
    """A plain file name of at most 100 characters and 200 bytes: no folder, no control character, no dotfile.

    Returns:
        "result" if nothing is left of the name.
    """
    plain = _BAD.sub("_", unicodedata.normalize("NFC", name)).strip().lstrip(".").strip(" .")
    if _DEVICE.match(plain):
        plain = f"_{plain}"
    return shortened(plain, "") or "result"


def shortened(name: str, addition: str) -> str:
    """``name`` with ``addition`` before its ending, cut so that the whole stays within the bounds."""
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > _LONGEST_ENDING:
        stem, dot, ending = name, "", ""
    tail = f"{addition}{dot}{ending}"
    stem = stem[: LONGEST_NAME - len(tail)]
    while len(f"{stem}{tail}".encode()) > 2 * LONGEST_NAME:  # folders of common systems take 255 bytes
        stem = stem[:-1]
    return f"{stem}{tail}"
