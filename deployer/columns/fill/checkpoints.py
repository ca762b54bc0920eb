"""Checkpoints of jobs that write columns: the finished work of a killed run, which the next run does not repeat.

Checkpoints are below the root, in `_work/TABLE_ID/JOB_ID/`. `job` describes the job, `fragment-ID` names the data files
with the values of a fragment, and `parts-ID` has values of an unfinished fragment (see `parts`). Each has a checksum; a
damaged checkpoint counts as missing. The data files lie in the dataset's own folder, and a commit only names them.
`table gc` and CLEAN remove the checkpoints of jobs that no run works on, once they are older than the grace period.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployer.columns.fill.parts import Parts, parts_folder, rows_of
from deployer.columns.fill.work import FragmentWork
from deployer.datasets.files.column_files import ColumnFile
from deployer.datasets.storage.job_folders import job_folder, remove_job_folder
from deployer.datasets.storage.options import objects_at
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.storage.envelope import seal, unseal
from deployer.platform.storage.objects import Missing, ObjectStore

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FILE = re.compile(r"[A-Za-z0-9_-]+\.lance")  #: the name of a data file
_JOB = "job"


def checked_job_id(job_id: str) -> str:
    """Returns the id, which becomes the name of a folder. Raises InvalidInput for an id that cannot be such a name."""
    if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        raise InvalidInput(
            f"{job_id!r} is not a valid job id",
            remedy="use up to 100 letters, digits, `.`, `_` and `-`, beginning with a letter or digit",
        )
    return job_id


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The data files with the values of one fragment of dataset number `dataset`. `work` is the state of the fragment
    from which the values were computed."""

    dataset: int
    work: FragmentWork
    files: tuple[ColumnFile, ...]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(each.path for each in self.files)

    def holds(self, dataset: int, work: FragmentWork) -> bool:
        """Returns whether these are still the values for the fragment `work`, whose outputs may already have some of
        the files."""
        return (
            self.dataset == dataset
            and len(self.work.outputs) == len(work.outputs)
            and work.is_still(self.work, self.paths)
        )

    def is_committed(self, dataset: int, work: FragmentWork) -> bool:
        """Returns whether the fragment `work` has these files, so that the values are committed."""
        return self.dataset == dataset and self.work.inputs == work.inputs and self.paths <= set(work.outputs)

    def is_whole(self, location: str) -> bool:
        """Returns whether the dataset at `location` has the files, complete with all their bytes."""
        objects = objects_at(location)
        try:
            return all(objects.size(f"data/{file.path}") == file.bytes for file in self.files)
        except Missing:
            return False


class JobFolder:
    """The checkpoints of one job. It can be pickled."""

    def __init__(self, root: str, table_id: str, job_id: str) -> None:
        self._root, self._table_id, self._job_id = root, table_id, job_id
        self._folder = job_folder(table_id, job_id)

    @property
    def _objects(self) -> ObjectStore:
        return objects_at(self._root)

    def begin(self, document: Mapping[str, Any], where: str) -> None:
        """Stores the description of the job. Raises InvalidInput where the id belongs to a job with another
        description."""
        text = seal(json.dumps(document, sort_keys=True).encode())
        if self._objects.replace(f"{self._folder}/{_JOB}", text, None) is not None:
            return
        known = self._read(_JOB)
        if known is None:
            self._objects.put(f"{self._folder}/{_JOB}", text)
            return
        self._refuse_other(known, document, where)

    def require_same(self, document: Mapping[str, Any], where: str) -> None:
        """Raises InvalidInput as `begin` does, and changes nothing."""
        if (known := self._read(_JOB)) is not None:
            self._refuse_other(known, document, where)

    def _refuse_other(self, known: Mapping[str, Any], document: Mapping[str, Any], where: str) -> None:
        differing = sorted(name for name in {*known, *document} if known.get(name) != document.get(name))
        if differing:
            raise InvalidInput(
                f"job {self._job_id} was started with another {' and another '.join(differing)}",
                where=where,
                remedy="give the job's own arguments to resume it, or another job id",
            )

    def save(self, checkpoint: Checkpoint) -> None:
        """Stores the checkpoint of a fragment. After the call returns, the checkpoint survives the end of this process.

        A power failure may damage it; then it counts as missing.
        """
        self._objects.put(self._path_of(checkpoint.work.fragment_id), _sealed(checkpoint), durable=False)

    def save_first(self, checkpoint: Checkpoint) -> bool:
        """Stores the checkpoint as `save` does, but only if the fragment has none; returns whether it was stored."""
        path = self._path_of(checkpoint.work.fragment_id)
        return self._objects.replace(path, _sealed(checkpoint), None, durable=False) is not None

    def saved(self) -> dict[int, Checkpoint]:
        """Returns the checkpoints by fragment id."""
        found = {}
        for path in self._objects.list(self._folder):
            kind, _, number = path.rpartition("/")[2].partition("-")
            if kind == "fragment" and number.isdecimal() and (checkpoint := self.saved_of(int(number))) is not None:
                found[int(number)] = checkpoint
        return found

    def saved_of(self, fragment_id: int) -> Checkpoint | None:
        """Returns the checkpoint of a fragment; None where it is missing or invalid."""
        document = self._read(f"fragment-{fragment_id}")
        if document is None:
            return None
        try:
            return _checkpoint(fragment_id, document)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def saved_parts(self, fragment_id: int | None = None) -> dict[int, list[range]]:
        """Returns the rows of the saved parts by fragment id, of one fragment or (None) of all fragments."""
        found: dict[int, list[range]] = {}
        folder = self._folder if fragment_id is None else parts_folder(self._folder, fragment_id)
        for path in self._objects.list(folder):
            *_, folder, name = path.split("/")
            kind, _, number = folder.rpartition("-")
            if kind == "parts" and number.isdecimal() and (rows := rows_of(name)) is not None:
                found.setdefault(int(number), []).append(rows)
        return found

    def parts(self, dataset: int, work: FragmentWork, known: Sequence[range]) -> Parts:
        """Returns the parts of a fragment; `known` are the rows of the saved parts."""
        return Parts(self._root, parts_folder(self._folder, work.fragment_id), dataset, work, known)

    def remove(self) -> None:
        """Removes all checkpoints of the job."""
        remove_job_folder(self._root, self._table_id, self._job_id)

    def _path_of(self, fragment_id: int) -> str:
        return f"{self._folder}/fragment-{fragment_id}"

    def _read(self, name: str) -> dict[str, Any] | None:
        where = f"{self._folder}/{name}"
        try:
            document = json.loads(unseal(self._objects.get(where), where))
        except (Missing, DeployerError, ValueError):
            return None
        return document if isinstance(document, dict) else None


def _checkpoint(fragment_id: int, document: Mapping[str, Any]) -> Checkpoint:
    """Returns the checkpoint of a document. Raises KeyError, TypeError, ValueError or AttributeError for an invalid
    document, because any writer below the root can store one."""
    rows = operator.index(document["rows"])
    work = FragmentWork(fragment_id, rows, tuple(document["inputs"]), tuple(document["outputs"]))
    files = tuple(ColumnFile(fragment_id, rows, each) for each in document["files"])
    if not all(_FILE.fullmatch(each.path) and each.bytes >= 0 for each in files):
        raise ValueError("a data file lies in the dataset's own folder")
    return Checkpoint(operator.index(document["dataset"]), work, files)


def _sealed(checkpoint: Checkpoint) -> bytes:
    document = {
        "dataset": checkpoint.dataset,
        "rows": checkpoint.work.physical_rows,
        "inputs": checkpoint.work.inputs,
        "outputs": checkpoint.work.outputs,
        "files": [each.metadata for each in checkpoint.files],
    }
    return seal(json.dumps(document).encode())
