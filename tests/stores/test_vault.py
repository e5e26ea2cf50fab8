"""R-AUDIT-3, INV-33: what operations keep secret is readable with the site's keys only, and only for its own row."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.fernet import Fernet

from jobtrack.core.sealed import Sealed, SubmitBytes
from jobtrack.errors import VaultError
from jobtrack.stores import vault as vault_module
from jobtrack.stores.vault import FernetVault

CONTENT = Sealed(
    submission=SubmitBytes(
        method="POST",
        url="https://api.acme.example/v1/exports?key=CANARY",
        headers=(("Idempotency-Key", "CANARY"), ("X-Twice", "1"), ("X-Twice", "2")),
        body=b'{"secret": "CANARY"}\xff',
    ),
    status_url="https://api.acme.example/v1/exports/1?token=CANARY",
    handle="CANARY-\N{SNOWMAN}",
)


def test_what_is_sealed_comes_back_as_it_was():
    vault = FernetVault(["k"])
    assert vault.open("op-1", vault.seal("op-1", CONTENT)) == CONTENT


def test_nothing_is_sealed_as_nothing_even_without_a_key():
    assert (FernetVault([]).seal("op-1", Sealed()), FernetVault([]).open("op-1", "")) == ("", Sealed())


def test_the_sealed_text_shows_nothing_and_is_another_one_each_time():
    vault = FernetVault(["k"])
    texts = {vault.seal("op-1", CONTENT) for _ in range(3)}
    assert len(texts) == 3
    for text in texts:
        assert b"CANARY" not in base64.urlsafe_b64decode(text)


def test_the_first_key_seals_and_all_open():
    """Rotation: the new key goes in front, the old one stays until no row needs it."""
    old = FernetVault(["old"]).seal("op-1", CONTENT)
    both = FernetVault(["new", "old"])
    assert both.open("op-1", old) == CONTENT
    assert FernetVault([b"new"]).open("op-1", both.seal("op-1", CONTENT)) == CONTENT
    with pytest.raises(VaultError):
        FernetVault(["old"]).open("op-1", both.seal("op-1", CONTENT))


def test_a_text_moved_to_another_row_is_refused():
    vault = FernetVault(["k"])
    with pytest.raises(VaultError, match="another operation"):
        vault.open("op-2", vault.seal("op-1", CONTENT))


def damaged(text: str, at: int) -> str:
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


@pytest.mark.parametrize("at", [0, 3, 20, 60, -30, -3])
def test_a_changed_text_is_refused_and_the_error_tells_nothing(at):
    vault = FernetVault(["k"])
    text = vault.seal("op-1", CONTENT)
    with pytest.raises(VaultError) as caught:
        vault.open("op-1", damaged(text, at % len(text)))
    shown = "".join((repr(caught.value), str(caught.value.context), repr(caught.value.__cause__)))
    assert "CANARY" not in shown
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "inside",
    ["CANARY", "[]", "{}", "null", '"CANARY"', '{"operation": "op-1"}', '{"operation": "op-1", "content": "CANARY"}']
    + [json.dumps({"operation": "op-1", "content": text}) for text in ("{}", "[]", "null", '{"submission": 3}')],
)
def test_a_properly_sealed_text_that_says_something_else_is_a_vault_error(inside):
    text = Fernet(vault_module._derived("k")).encrypt(inside.encode()).decode()
    with pytest.raises(VaultError) as caught:
        FernetVault(["k"]).open("op-1", text)
    assert "CANARY" not in repr(caught.value)


@pytest.mark.parametrize("text", ["not a token", "gAAAA", "\N{SNOWMAN}", "=" * 99])
def test_a_text_of_another_kind_is_refused(text):
    with pytest.raises(VaultError):
        FernetVault(["k"]).open("op-1", text)


def test_no_key_and_an_empty_key_are_refused():
    """An empty text as a key would seal with what everybody can derive."""
    for keys in ([], [""], [b""], ["k", ""]):
        with pytest.raises(VaultError):
            FernetVault(keys).seal("op-1", CONTENT)


def test_keys_are_asked_for_each_time_and_not_before():
    asked = []

    def keys():
        asked.append(1)
        return ["k"]

    vault = FernetVault(keys)
    assert asked == []
    vault.open("op-1", vault.seal("op-1", CONTENT))
    assert len(asked) == 2


def test_a_derived_key_never_changes_between_releases():
    """A row sealed by one release is read by the next."""
    assert vault_module._derived("k") == vault_module._derived(b"k")
    assert vault_module._derived("k") == b"RrPWKCkGpLNPK9KsMYHjJ0IhIz2EHNSM5vovXBAt7qg="


def test_no_repr_shows_what_is_sealed():
    assert "CANARY" not in repr(CONTENT) + repr(CONTENT.submission) + f"{CONTENT}"
