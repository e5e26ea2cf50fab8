"""Where results are kept (R-END-4, R-SEC-4): whole, under a name of ours, and never in the place of another file."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, InMemoryStorage, storages

from jobtrack.records import ResultFile
from jobtrack.testing import MemoryFiles
from jobtrack_django.files import DjangoFiles, result_storage

FIRST, SECOND = b"a,b\n" * 1000, b"1,2\n" * 1000
WHOLE = FIRST + SECOND
HASH = sha256(b"op/1").hexdigest()
PLACE = f"jobtrack/results/{HASH[:2]}/{HASH}"


class Overwriting(InMemoryStorage):
    """As an object store does: what is saved takes the place of what was there."""

    def get_available_name(self, name, max_length=None):
        if self.exists(name):
            self.delete(name)
        return name


@pytest.fixture
def spool(tmp_path) -> Path:
    return tmp_path / "spool"


@pytest.fixture(params=["file system", "in memory", "overwriting"])
def storage(request, tmp_path):
    match request.param:
        case "file system":
            return FileSystemStorage(location=tmp_path / "storage")
        case "in memory":
            return InMemoryStorage()  # has no path(): nothing can be appended
        case _:
            return Overwriting()


@pytest.fixture
def files(storage, spool) -> DjangoFiles:
    return DjangoFiles(storage=storage, spool=str(spool))


def written(files, *chunks, name="report.csv", resume=None):
    writer = files.writer("op/1", name, resume=resume)
    for chunk in chunks:
        writer.feed(chunk)
    return writer


def offset(files, operation_id="op/1", name="report.csv", *, resume):
    """Where a download would go on."""
    writer = files.writer(operation_id, name, resume=resume)
    found = writer.offset
    writer.pause()
    return found


def content(files, file: ResultFile) -> bytes:
    with files.open(file) as opened:
        return opened.read()


def left(spool: Path) -> list[str]:
    return sorted(path.name for path in spool.iterdir())


def test_a_file_is_stored_whole_with_its_checksum(files, spool):
    file = written(files, FIRST, SECOND).finish()
    assert file == ResultFile(
        name="report.csv",
        path=f"{PLACE}/report.csv",
        size=len(WHOLE),
        sha256=sha256(WHOLE).hexdigest(),
        complete=True,
    )
    assert content(files, file) == WHOLE
    assert left(spool) == []


def test_nothing_is_in_the_storage_before_the_end(files, storage, spool):
    writer = written(files, FIRST)
    assert not storage.exists(f"{PLACE}/report.csv")
    assert [oct(path.stat().st_mode & 0o777) for path in spool.iterdir()] == ["0o600"]
    writer.finish()


def test_an_empty_file_is_a_file(files):
    file = written(files).finish()
    assert (file.size, file.complete, content(files, file)) == (0, True, b"")


def test_a_download_goes_on_where_it_stopped(files, spool):
    paused = written(files, FIRST).pause()
    assert (paused.size, paused.complete, paused.sha256) == (len(FIRST), False, "")
    writer = files.writer("op/1", "report.csv", resume=paused)
    assert writer.offset == len(FIRST)
    writer.feed(SECOND)
    file = writer.finish()
    assert (file.sha256, content(files, file), left(spool)) == (sha256(WHOLE).hexdigest(), WHOLE, [])


def test_an_answer_that_begins_anew_replaces_what_was_there(files):
    writer = files.writer("op/1", "report.csv", resume=written(files, WHOLE).pause())
    writer.restart()
    assert writer.offset == 0
    writer.feed(FIRST)
    file = writer.finish()
    assert (content(files, file), file.sha256) == (FIRST, sha256(FIRST).hexdigest())


def test_bytes_that_were_not_written_down_are_not_trusted(files, spool):
    """A process that ended after it paused and before its row was written leaves more than the row says."""
    paused = written(files, FIRST).pause()
    with (spool / paused.path).open("ab") as more:
        more.write(b"garbage")
    writer = files.writer("op/1", "report.csv", resume=paused)
    assert writer.offset == len(FIRST)
    writer.feed(SECOND)
    assert content(files, writer.finish()) == WHOLE


def test_nothing_worth_keeping_is_kept(files, spool):
    paused = written(files).pause()
    assert (paused.path, paused.size, left(spool)) == ("", 0, [])
    assert offset(files, resume=paused) == 0


def lost(spool, paused):
    (spool / paused.path).unlink()


def shorter(spool, paused):
    os.truncate(spool / paused.path, 3)


def linked(spool, paused):
    target = spool.parent / "foreign"
    target.write_bytes(WHOLE)
    lost(spool, paused)
    (spool / paused.path).symlink_to(target)


def a_folder(spool, paused):
    lost(spool, paused)
    (spool / paused.path).mkdir()


def a_pipe(spool, paused):
    lost(spool, paused)
    os.mkfifo(spool / paused.path)


@pytest.mark.parametrize("damage", [lost, shorter, linked, a_folder, a_pipe])
def test_without_a_sound_spool_file_it_begins_anew(damage, files, spool):
    """On another machine there is none; and the folder may be open to other users."""
    paused = written(files, FIRST).pause()
    damage(spool, paused)
    writer = files.writer("op/1", "report.csv", resume=paused)
    assert writer.offset == 0
    writer.feed(WHOLE)
    assert content(files, writer.finish()) == WHOLE
    if damage is linked:
        assert (spool.parent / "foreign").read_bytes() == WHOLE


@pytest.mark.parametrize("path", ["../foreign", "/etc/passwd", "foreign", "", "jobtrack-x.part"])
def test_a_record_never_names_a_file_that_is_not_ours(path, files, spool):
    spool.mkdir()
    for foreign in (spool / "foreign", spool.parent / "foreign"):
        foreign.write_bytes(FIRST)
    writer = files.writer("op/1", "report.csv", resume=ResultFile(name="report.csv", path=path, size=3))
    assert writer.offset == 0
    writer.feed(SECOND)
    writer.finish()
    assert (spool / "foreign").read_bytes() == (spool.parent / "foreign").read_bytes() == FIRST


def test_the_spool_of_one_operation_is_not_resumed_by_another(files):
    paused = written(files, FIRST).pause()
    assert offset(files, "op/2", resume=paused) == 0
    assert offset(files, name="other.csv", resume=paused) == 0


def test_only_one_of_two_processes_goes_on(files):
    """A lease may be lost while its holder still writes."""
    paused = written(files, FIRST).pause()
    offsets = [offset(files, resume=paused) for _ in range(2)]
    assert offsets == [len(FIRST), 0]


def test_a_complete_file_is_never_gone_on_with(files):
    file = written(files, WHOLE).finish()
    assert offset(files, resume=file) == 0


def test_a_file_that_is_not_ours_stays_as_it_is(files, storage):
    storage.save(f"{PLACE}/report.csv", ContentFile(b"foreign"))
    file = written(files, WHOLE).finish()
    assert file.path != f"{PLACE}/report.csv"
    assert file.path.startswith(f"{PLACE}/report-")
    assert file.path.endswith(".csv")
    assert content(files, file) == WHOLE
    with storage.open(f"{PLACE}/report.csv") as foreign:
        assert foreign.read() == b"foreign"


def test_a_foreign_file_of_the_same_size_is_foreign(files, storage):
    storage.save(f"{PLACE}/report.csv", ContentFile(b"x" * len(WHOLE)))
    assert written(files, WHOLE).finish().path != f"{PLACE}/report.csv"


def test_the_same_content_again_is_the_same_file(files, storage):
    """A process that ends between storing a file and writing it down leaves no second copy."""
    first, second = (written(files, WHOLE).finish() for _ in range(2))
    assert first == second
    assert storage.listdir(PLACE)[1] == ["report.csv"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a/b\\c", ".htaccess", "x" * 500, "\x00\n"])
def test_no_name_leaves_its_folder(name, files, storage):
    file = written(files, FIRST, name=name).finish()
    assert Path(file.path).parent.as_posix() == PLACE
    assert file.path == f"{PLACE}/{file.name}"
    assert len(file.name) <= 100
    assert content(files, file) == FIRST


def test_two_names_that_become_one_are_two_files(files):
    first = written(files, FIRST, name="a/b.csv").finish()
    second = written(files, SECOND, name="a:b.csv").finish()
    assert first.path != second.path
    assert (content(files, first), content(files, second)) == (FIRST, SECOND)


def test_a_storage_that_fails_costs_nothing_of_the_download(files, storage, spool, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    writer = written(files, FIRST)
    with monkeypatch.context() as patch:
        patch.setattr(type(storage), "save", full)
        with pytest.raises(OSError, match="No space"):
            writer.finish()
    paused = writer.pause()
    again = files.writer("op/1", "report.csv", resume=paused)
    assert again.offset == len(FIRST)
    assert (content(files, again.finish()), left(spool)) == (FIRST, [])


def test_finishing_removes_what_ended_processes_left_of_the_same_file_only(files, spool):
    written(files, FIRST).pause()
    other = written(files, FIRST, name="other.csv").pause()
    written(files, WHOLE).finish()
    assert left(spool) == [other.path]


def test_the_storage_is_the_one_the_settings_name(settings, tmp_path):
    def alias(name):
        return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path / name)}}

    settings.STORAGES = {**settings.STORAGES, "results": alias("results")}
    assert result_storage() is storages["default"]
    settings.STORAGES = {**settings.STORAGES, "jobtrack": alias("jobtrack")}
    assert result_storage() is storages["jobtrack"]
    settings.JOBTRACK = {"RESULT_STORAGE": "results"}
    assert result_storage() is storages["results"]
    file = written(DjangoFiles(spool=str(tmp_path)), FIRST).finish()
    assert (tmp_path / "results" / file.path).read_bytes() == FIRST


def test_files_in_memory_obey_the_same_contract():
    """What tests use in place of a storage."""
    files = MemoryFiles()
    paused = written(files, FIRST).pause()
    writer = files.writer("op/1", "report.csv", resume=paused)
    assert (writer.offset, paused.size) == (len(FIRST), len(FIRST))
    writer.feed(SECOND)
    file = writer.finish()
    assert (file.name, file.size, file.sha256, file.complete) == (
        "report.csv",
        len(WHOLE),
        sha256(WHOLE).hexdigest(),
        True,
    )
    assert files.stored[file.path] == WHOLE
    assert written(files, WHOLE).finish() == file
    assert written(files, FIRST).finish().path != file.path
    assert written(files).pause().size == 0
    restarted = written(files, WHOLE)
    restarted.restart()
    assert restarted.offset == 0
