"""Content-Encoding is undone within a limit, whatever the bytes are and however they are cut (INV-34)."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtrack.transports.decode import TooLarge, Undecodable, decoder

TEXT = b'{"status": "running"}' * 40
RAW = zlib.compressobj(wbits=-15)
RAW_DEFLATE = RAW.compress(TEXT) + RAW.flush()
LIMIT = len(TEXT)


def undo(encodings: list[str], data: bytes, limit: int = LIMIT, step: int = 7) -> bytes:
    body = bytearray()
    sink = decoder(encodings, limit, body.extend)
    for start in range(0, len(data), step):
        sink.feed(data[start : start + step])
    sink.finish()
    return bytes(body)


UNDONE = {
    "none": ([], TEXT),
    "identity": (["identity"], TEXT),
    "identity, oddly written": ([" Identity , "], TEXT),
    "gzip": (["gzip"], gzip.compress(TEXT)),
    "x-gzip": (["X-GZip"], gzip.compress(TEXT)),
    "identity, then gzip": (["identity, gzip"], gzip.compress(TEXT)),
    "two members": (["gzip"], gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
    "deflate": (["deflate"], zlib.compress(TEXT)),
    "deflate without its header": (["deflate"], RAW_DEFLATE),
}


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("case", UNDONE)
def test_an_encoding_is_undone(case, step) -> None:
    encodings, data = UNDONE[case]
    assert undo(encodings, data, step=step) == TEXT


def test_nothing_unpacks_to_nothing() -> None:
    assert [undo([word], b"") for word in ("identity", "gzip", "deflate")] == [b"", b"", b""]


NOT_UNDONE = {
    "brotli": (["br"], b""),
    "stacked": (["gzip, gzip"], b""),
    "stacked in two headers": (["gzip", "gzip"], b""),
    "two kinds": (["deflate, gzip"], b""),
    "cut gzip": (["gzip"], gzip.compress(TEXT)[:-1]),
    "gzip with a tail": (["gzip"], gzip.compress(TEXT) + b"tail"),
    "text called gzip": (["gzip"], TEXT),
    "cut deflate": (["deflate"], zlib.compress(TEXT)[:-1]),
    "deflate with a tail": (["deflate"], zlib.compress(TEXT) + b"tail"),
    "deflate with a gzip tail": (["deflate"], zlib.compress(TEXT) + gzip.compress(TEXT)),
    "bytes called deflate": (["deflate"], b"\xff" * 30),
}


@pytest.mark.parametrize("case", NOT_UNDONE)
def test_what_cannot_be_undone_is_said(case) -> None:
    encodings, data = NOT_UNDONE[case]
    with pytest.raises(Undecodable):
        undo(encodings, data, limit=10_000)


TOO_LARGE = {
    "plain": ([], TEXT + b" "),
    "gzip": (["gzip"], gzip.compress(TEXT + b" ")),
    "deflate": (["deflate"], zlib.compress(TEXT + b" ")),
    "in the second member": (["gzip"], gzip.compress(TEXT) + gzip.compress(b" ")),
    "empty members without end": (["gzip"], gzip.compress(b"") * 100),
}


@pytest.mark.parametrize("case", TOO_LARGE)
def test_one_byte_over_the_limit_is_too_large(case) -> None:
    encodings, data = TOO_LARGE[case]
    with pytest.raises(TooLarge):
        undo(encodings, data)


@given(st.sampled_from(["gzip", "deflate"]), st.binary(max_size=300), st.integers(1, 300))
def test_any_bytes_end_in_a_body_or_a_declared_error(encoding, data, step) -> None:
    try:
        body = undo([encoding], data, step=step)
    except (TooLarge, Undecodable):
        return
    assert len(body) <= LIMIT


@pytest.mark.parametrize("beyond", [1, 2, 100, 258])
def test_what_is_left_inside_after_a_full_step_is_taken_out(beyond) -> None:
    """The last bytes of a raw stream may all be used while the last match is not yet written out."""
    text = b" " * (64 * 1024 + beyond)
    packer = zlib.compressobj(9, wbits=-15)
    data = packer.compress(text) + packer.flush()
    assert undo(["deflate"], data, limit=1 << 20, step=len(data)) == text
