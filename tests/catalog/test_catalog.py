"""Tables on disk: found by name, read when asked for, read again when they change."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from jobtrack.catalog import Catalog, catalog, check_paths, load_file, load_text, shipped_paths, table_files
from jobtrack.errors import TableError, TableMissing
from tests.catalog.builders import table_text


def write(folder: Path, name: str = "shape", text: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text((text or table_text()).replace("id: shape", f"id: {name}"), encoding="utf-8")
    return path


def codes(*paths: Path) -> list[tuple[str, str]]:
    return [(Path(finding.file).name, finding.code) for finding in check_paths(paths) if finding.level == "error"]


def test_tables_are_found_in_directories_and_files(tmp_path: Path):
    write(tmp_path / "a", "one")
    two = write(tmp_path / "b", "two")
    tables = Catalog([tmp_path / "a", two])
    assert tables.ids() == ["one", "two"]
    assert [tables.require(name).id for name in tables.ids()] == ["one", "two"]
    assert tables.get("three") is None
    with pytest.raises(TableMissing, match=r"no provider table three\. Known tables: one, two"):
        tables.require("three")
    with pytest.raises(TableMissing, match="Known tables: none"):
        Catalog([tmp_path / "nowhere"]).require("three")


def test_a_table_is_read_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path)
    reads: list[Path] = []
    monkeypatch.setattr(catalog, "check_file", lambda path, check=catalog.check_file: reads.append(path) or check(path))
    tables = Catalog([tmp_path])
    first = tables.get("shape")
    assert tables.get("shape") is first
    assert reads == [path]
    write(tmp_path, text=table_text().replace("revision: 1", "revision: 2"))
    os.utime(path, ns=(1, 1))
    assert tables.require("shape").revision == 2
    assert [finding.code for finding in tables.findings()] == ["no_examples", "no_echo", "no_result"]
    path.unlink()
    assert tables.get("shape") is None
    assert len(reads) == 3  # once more for the findings


def test_a_file_that_vanishes_while_it_is_looked_up_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path).unlink()
    monkeypatch.setattr(Path, "is_file", lambda _path: True)
    assert Catalog([tmp_path]).get("shape") is None


def test_a_broken_table_is_refused_whole(tmp_path: Path):
    path = write(tmp_path, text=table_text() + "colour: red\n")
    tables = Catalog([tmp_path])
    assert tables.get("shape") is None
    with pytest.raises(TableError) as raised:
        tables.require("shape")
    message = f"{path}:12:1: The key colour is not known here; write one of jobtrack, id, name, docs, revision,"
    assert str(raised.value).splitlines()[0] == f"The provider table {path} has 1 mistake:"
    assert message in str(raised.value)
    assert raised.value.context["findings"][0]["column"] == 1
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)  # noqa: S301 - our own error
    assert [finding.code for finding in tables.findings() if finding.level == "error"] == ["unknown_key"]


def test_two_files_with_one_id_are_refused(tmp_path: Path):
    one, two = write(tmp_path / "a"), write(tmp_path / "b")
    tables = Catalog([tmp_path / "a", tmp_path / "b"])
    assert tables.get("shape") is None
    with pytest.raises(TableError, match=f"shape is in {one} too"):
        tables.require("shape")
    assert [finding.file for finding in check_paths([one, two]) if finding.code == "same_id"] == [str(two)]


def test_a_site_mends_a_shipped_table_by_a_file_of_its_own(tmp_path: Path):
    shipped = write(tmp_path / "shipped")
    shipped.write_text(shipped.read_text() + "nonsense: 1\n")
    own = write(tmp_path / "own")
    tables = Catalog([tmp_path / "own"], base=[tmp_path / "shipped"])
    assert (tables.require("shape").source, tables.ids()) == (str(own), ["shape"])
    assert [finding for finding in tables.findings() if finding.level == "error"] == []
    own.unlink()
    assert tables.get("shape") is None
    assert [finding.code for finding in tables.findings() if finding.level == "error"] == ["unknown_key"]


def test_one_directory_named_twice_is_one(tmp_path: Path):
    path = write(tmp_path)
    assert table_files([tmp_path, tmp_path, path]) == [path]
    assert Catalog([tmp_path, tmp_path, path]).require("shape").id == "shape"


def test_a_file_is_named_after_its_table(tmp_path: Path):
    path = write(tmp_path)
    other = path.rename(tmp_path / "other.yaml")
    assert codes(other) == [("other.yaml", "file_name")]
    with pytest.raises(TableError, match=r"rename the file to shape\.yaml"):
        load_file(other)
    assert Catalog([tmp_path]).get("shape") is None


def test_other_endings_are_pointed_out(tmp_path: Path):
    (tmp_path / "shape.yml").write_text(table_text(), encoding="utf-8")
    assert codes(tmp_path) == [("shape.yml", "file_name")]


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"jobtrack: 1\nname: \xff\n", "encoding", 2),
        (b"#" * (256 * 1024 + 1), "too_large", 1),
        (b"\xff" * (256 * 1024 + 1), "too_large", 1),
        (b"- a\n", "value", 1),
        (b"id: 7\n", "look_alike", 1),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes, code: str, line: int):
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    assert (code, line) in [(finding.code, finding.line) for finding in check_paths([path])]


def test_a_file_that_is_not_there_is_a_finding(tmp_path: Path):
    assert codes(tmp_path / "x.yaml") == [("x.yaml", "unreadable")]


def test_a_table_from_text_needs_no_file():
    assert load_text(table_text()).source == ""
    with pytest.raises(TableError, match="The provider table given as text has 1 mistake"):
        load_text("")


def test_shipped_tables_are_found_in_a_checkout_and_in_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (checkout,) = shipped_paths()
    assert checkout.name == "providers"
    package = tmp_path / "jobtrack"
    (package / "_providers").mkdir(parents=True)
    monkeypatch.setattr(catalog.resources, "files", lambda _name: package)
    assert shipped_paths() == [package / "_providers"]
    (package / "_providers").rmdir()
    assert shipped_paths() == []


def test_shipped_tables_have_nothing_to_complain_about():
    assert [str(finding) for finding in check_paths(shipped_paths())] == []


def test_findings_read_like_those_of_a_compiler(tmp_path: Path):
    path = write(tmp_path)
    assert str(check_paths([path])[0]).startswith(f"{path}:1:1: warning: No answer is shown;")
    assert str(check_paths([path])[-1]).startswith(f"{path}:9:3: warning: ")


def test_a_place_that_cannot_be_looked_into_hides_no_other_table(tmp_path: Path):
    """Asking for a name that is too long raises as a folder without permission does."""
    write(tmp_path / "a", "one")
    tables = Catalog(["x" * 5000, tmp_path / "a"], base=["y" * 5000])
    assert (tables.require("one").id, tables.ids()) == ("one", ["one"])
    assert [finding.code for finding in check_paths(["x" * 5000])] == ["unreadable"]


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_file_without_end_is_too_large():
    assert codes(Path("/dev/zero")) == [("zero", "too_large")]
