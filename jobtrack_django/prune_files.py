"""Files of results that go with their operations. A list beside the proof outlives an interruption."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jobtrack_django import conf
from jobtrack_django.files import result_storage
from jobtrack_django.models_watch import PrunedOperation
from jobtrack_django.proofs import naming, write

logger = logging.getLogger(__name__)

_SUFFIX = ".files"


def list_files(proof: Path, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Write down which files go once the transaction of this batch is committed.

    Args:
        proof: path of the proof file.
        results: operation id -> the files of its result, as its row keeps them.
    """
    lines = [
        json.dumps([operation_id, file["path"]])
        for operation_id, files in results.items()
        for file in files
        if file.get("complete")
    ]
    if not lines:
        return
    path = proof.with_name(f"{proof.name}.{secrets.token_hex(4)}{_SUFFIX}")
    with naming(path) as part:
        write(part, lines)
        part.rename(path)


def delete_listed(folder: Path) -> tuple[int, int]:
    """Delete the listed files of operations that are pruned, by this run or by one that was interrupted.

    Returns:
        How many were deleted, and how many the storage would not delete; these stay listed.
    """
    counts = [_delete_list(path) for path in sorted(folder.glob(f"*{_SUFFIX}"))]
    return sum(deleted for deleted, _ in counts), sum(kept for _, kept in counts)


def _delete_list(path: Path) -> tuple[int, int]:
    """A list goes when nothing of it is left to do. Until its transaction is committed, everything is."""
    listed = [tuple(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    ids = {operation_id for operation_id, _ in listed}
    pruned = PrunedOperation.objects.using(conf.settings().database).filter(pk__in=ids)
    proofs = dict(pruned.values_list("pk", "proof"))
    proof = path.name.removesuffix(_SUFFIX).rpartition(".")[0]
    kept = [file for operation_id, file in listed if proofs.get(operation_id) == proof and not _deleted(file)]
    if not kept and ids == proofs.keys():
        path.unlink(missing_ok=True)
    return sum(proofs.get(operation_id) == proof for operation_id, _ in listed) - len(kept), len(kept)


def _deleted(file: str) -> bool:
    """Storages raise what they like; one file must not keep the others."""
    try:
        result_storage().delete(file)
    except Exception:  # a storage of the site
        logger.exception("the storage did not delete the result file %r", file)
        return False
    return True
