"""Where fetched results are kept: a storage of the site (R-END-4).

Many storages cannot append, so a download is spooled on this machine's disk and handed over once it is complete. A
download that ends early is resumed from its spool file if that is still there, and begins anew if it is not.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from django.conf import settings as django_settings
from django.core.files import File
from django.core.files.storage import Storage, storages

from jobtrack.records import ResultFile
from jobtrack.stores.names import clean_name, shortened
from jobtrack_django import conf

FOLDER = "jobtrack/results"
"""Where all results are in the storage."""

_CHUNK = 1 << 20
_SPOOLED = re.compile(r"jobtrack-[0-9a-f]{40}-[0-9a-f]{16}\.part")


def result_storage() -> Storage:
    """The storage that ``RESULT_STORAGE`` names; else the one called "jobtrack" if there is one; else the default."""
    named = conf.settings().result_storage
    return storages[named or ("jobtrack" if "jobtrack" in django_settings.STORAGES else "default")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DjangoFiles:
    """Implements ``ports.Files`` over a Django storage."""

    storage: Storage | None = None  # None: what the settings name, at each use
    spool: str | None = None  # folder for downloads under way; None: the system's for temporary files

    def writer(self, operation_id: str, name: str, *, resume: ResultFile | None) -> SpooledWriter:
        """Begin a file, or go on with the one that ``resume`` tells of, if its spool file is on this machine."""
        folder = Path(self.spool or tempfile.gettempdir())
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = clean_name(name)
        path = _spool_path(folder, operation_id, name)
        handle = _taken_over(path, resume) if resume is not None and not resume.complete else None
        if handle is None:
            path = _spool_path(folder, operation_id, name)  # something unusable may be at the other one now
            handle = _created(path)
        return SpooledWriter(self, operation_id, name, path, handle)

    def used_storage(self) -> Storage:
        return self.storage or result_storage()

    def open(self, file: ResultFile) -> File[bytes]:
        """A complete file, for reading. Raises what the storage raises if it is not there."""
        return self.used_storage().open(file.path)


class SpooledWriter:
    """Implements ``ports.FileWriter``: a spool file that becomes a file of the storage when it is complete."""

    def __init__(self, files: DjangoFiles, operation_id: str, name: str, spool: Path, handle: BinaryIO) -> None:
        self._files = files
        self._operation_id = operation_id
        self._name = name
        self._spool = spool
        self._handle = handle
        self._digest = sha256()
        self._size = 0
        while chunk := handle.read(_CHUNK):
            self._count(chunk)

    @property
    def offset(self) -> int:
        return self._size

    def restart(self) -> None:
        self._handle.seek(0)
        self._handle.truncate()
        self._digest, self._size = sha256(), 0

    def feed(self, chunk: bytes) -> None:
        self._handle.write(chunk)
        self._count(chunk)

    def finish(self) -> ResultFile:
        """Hand the file over to the storage; what was spooled goes away. If that fails, it stays for ``pause``."""
        digest, storage = self._digest.hexdigest(), self._files.used_storage()
        try:
            self._handle.flush()
            path = self._stored_already(storage, digest)
            if path is None:
                self._handle.seek(0)
                path = storage.save(self._free_path(storage), File(self._handle, name=self._name))
        finally:
            self._close()
        self._sweep_spool()
        return ResultFile(name=self._name, path=path, size=self._size, sha256=digest, complete=True)

    def pause(self) -> ResultFile:
        """Keep what is spooled; ``path`` then names the spool file. An empty one is not worth keeping."""
        self._close()
        if not self._size:
            self._spool.unlink(missing_ok=True)
            return ResultFile(name=self._name, path="", size=0)
        return ResultFile(name=self._name, path=self._spool.name, size=self._size)

    def _count(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self._size += len(chunk)

    def _close(self) -> None:
        self._handle.close()

    def _wanted_path(self) -> str:
        hashed = sha256(self._operation_id.encode()).hexdigest()
        return f"{FOLDER}/{hashed[:2]}/{hashed}/{self._name}"

    def _stored_already(self, storage: Storage, digest: str) -> str | None:
        """The path if these very bytes are there: the process ended after saving and before it was written down."""
        path = self._wanted_path()
        if not storage.exists(path) or storage.size(path) != self._size:
            return None
        stored = sha256()
        with storage.open(path) as file:
            for chunk in file.chunks(_CHUNK):
                stored.update(chunk)
        return path if stored.hexdigest() == digest else None

    def _free_path(self, storage: Storage) -> str:
        """A path where nothing is. Some storages overwrite what is there, so the choice is not left to them."""
        path = self._wanted_path()
        while storage.exists(path):
            folder, _, _ = path.rpartition("/")
            path = f"{folder}/{shortened(self._name, f'-{secrets.token_hex(4)}')}"
        return path

    def _sweep_spool(self) -> None:
        """Remove the spool file, and those that ended processes left of the same file."""
        for left in self._spool.parent.glob(f"jobtrack-{_key(self._operation_id, self._name)}-*.part"):
            _removed(left)


def _key(operation_id: str, name: str) -> str:
    """Names one file of one operation in the spool, in 40 hexadecimal digits."""
    return sha256(f"{operation_id}\0{name}".encode(errors="surrogatepass")).hexdigest()[:40]


def _spool_path(folder: Path, operation_id: str, name: str) -> Path:
    return folder / f"jobtrack-{_key(operation_id, name)}-{secrets.token_hex(8)}.part"


def _removed(path: Path) -> None:
    with suppress(OSError):  # gone already, of another user, or no file
        path.unlink()


def _created(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w+b")


def _taken_over(path: Path, resume: ResultFile) -> BinaryIO | None:
    """The spool file of an earlier try under a new name, cut to what was written down; None if it cannot be used.

    Only one process succeeds in renaming it. The folder may be shared with other users: only a plain file of our own
    is used, and only the one of this operation and name.
    """
    if not _SPOOLED.fullmatch(resume.path) or resume.path.rpartition("-")[0] != path.name.rpartition("-")[0]:
        return None
    try:
        path.with_name(resume.path).rename(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        _removed(path)
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_size < resume.size:
        os.close(descriptor)
        _removed(path)
        return None
    os.truncate(descriptor, resume.size)
    return os.fdopen(descriptor, "r+b")
