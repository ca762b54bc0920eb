"""The status of a job on a cluster: an object below the instance's root that the job writes while it runs.

The logs of a cluster arrive late, in parts or not at all, and an exit code has few details. The status is either
complete or absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from deployer.datasets.storage.options import objects_at
from deployer.errors import Corrupt, DeployerError, InvalidSpecs, NotFound
from deployer.platform.storage.objects import Missing
from deployer.platform.system.progress import Progress
from deployer.platform.text.masking import masked_values

FOLDER = "_runs"


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a job: its progress, and after its end its result or the error that ended it."""

    progress: Progress | None = None
    result: Mapping[str, Any] | None = None
    error: DeployerError | None = None

    @property
    def ended(self) -> bool:
        return self.result is not None or self.error is not None


@dataclass(frozen=True, slots=True)
class StartedJob:
    """The run of a job on a cluster, with the data that is needed to follow it. `key` is the key of its attempt."""

    job_id: str
    program: str
    title: str
    cluster: str
    run_id: str
    key: str


def request(root: str, job_id: str, document: Mapping[str, Any]) -> None:
    """Stores the request of a job, for requests that are too large for a command line."""
    _put(root, _request_of(job_id), document)


def requested(root: str, job_id: str) -> Mapping[str, Any]:
    """Returns the stored request of a job. Raises NotFound for a job without a request."""
    document = _get(root, _request_of(job_id))
    if document is None:
        raise NotFound(
            f"there is no record of job {job_id}", where=f"{root}/{FOLDER}", remedy="run `deployer up` again"
        )
    return document


def write_status(root: str, key: str, status: JobStatus) -> None:
    """Stores the status of the attempt `key`; it replaces the previous status."""
    document: dict[str, Any] = {}
    if status.progress is not None:
        document["progress"] = asdict(status.progress)
    if status.result is not None:
        document["result"] = status.result
    if (error := status.error) is not None:
        where = None if error.where is None else str(error.where)
        document["error"] = {
            "kind": error.kind,
            "what": error.what,
            "where": where,
            "remedy": error.remedy,
            "exit_code": error.exit_code,
        }
    _put(root, f"{key}.json", masked_values(document))


def read_status(root: str, key: str) -> JobStatus:
    """Returns the newest status of the attempt `key`; an empty status until the job stores one."""
    document = _get(root, f"{key}.json") or {}
    progress, error = document.get("progress"), document.get("error")
    return JobStatus(
        Progress(**progress) if progress else None, document.get("result"), _error(error) if error else None
    )


def ask_to_end(root: str, key: str) -> None:
    """Requests the end of the attempt `key`: its job leaves the table unchanged, and stores that it ended."""
    _put(root, f"{key}-end.json", {})


def is_to_end(root: str, key: str) -> bool:
    """Returns whether `ask_to_end` was called for the attempt."""
    return _get(root, f"{key}-end.json") is not None


def _error(status: Mapping[str, Any]) -> DeployerError:
    kinds = {each.kind: each for each in _subclasses(DeployerError) if each is not InvalidSpecs}
    kind = kinds.get(str(status["kind"]), DeployerError)
    made = kind(status["what"], where=status["where"], remedy=status["remedy"])
    made.exit_code = int(status["exit_code"])
    return made


def _subclasses(kind: type[DeployerError]) -> list[type[DeployerError]]:
    """Returns the subclasses in `deployer.errors`, whose constructors have the same parameters."""
    return [each for each in kind.__subclasses__() if each.__module__ == DeployerError.__module__]


def remember(root: str, started: StartedJob) -> None:
    """Stores the run of a job, so that any machine can follow the run by the job's id."""
    _put(root, _by_job(started.job_id), asdict(started))


def remembered(root: str, job_id: str) -> StartedJob | None:
    """Returns the newest run of a job; None for a job that was never started on a cluster."""
    document = _get(root, _by_job(job_id))
    return None if document is None else StartedJob(**document)


def _request_of(job_id: str) -> str:
    return _by_job(job_id).replace("job-", "request-", 1)


def _by_job(job_id: str) -> str:
    """Returns the name of a job's object. Job ids are arbitrary text; therefore they never become paths."""
    return f"job-{blake2b(job_id.encode(), digest_size=16).hexdigest()}.json"


def _put(root: str, name: str, document: Mapping[str, Any]) -> None:
    objects_at(root, private=FOLDER).put(f"{FOLDER}/{name}", json.dumps(document).encode())


def _get(root: str, name: str) -> dict[str, Any] | None:
    try:
        data = objects_at(root).get(f"{FOLDER}/{name}")
    except Missing:
        return None
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Corrupt("the record of the run cannot be read", where=f"{root}/{FOLDER}/{name}", remedy="run it again")
    return found
