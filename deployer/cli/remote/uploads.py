"""Files of this machine for a load on a cluster. They are uploaded below the lake's root, which the cluster's role may
read, and removed after the load."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from deployer.cli.console.progress_display import Meter
from deployer.errors import InvalidInput
from deployer.platform.storage.s3_objects import S3Objects
from deployer.platform.system.progress import Progress
from deployer.tables.ingest.files.find import find_sources
from deployer.tables.ingest.files.folder_names import folders_of
from deployer.tables.ingest.files.loaded_files import identified
from deployer.tables.ingest.files.model import Format
from deployer.tables.ingest.files.source_files import is_on_s3

FOLDER = "_uploads"


def refuse_own_files(paths: Sequence[str], *, upload: bool) -> None:
    """Raises InvalidInput for files of this machine that are not uploaded, because a cluster reads only from S3."""
    own = [path for path in paths if not is_on_s3(path)]
    if own and not upload:
        raise InvalidInput(
            "a cluster on AWS cannot read files of this machine",
            where=own[0],
            remedy="add --upload; or put them below the lake's root, which its role may read, and give their address",
        )


def upload_files(
    root: str, job_id: str, paths: Sequence[str], form: Format | None, *, as_json: bool
) -> tuple[str, ...]:
    """Uploads the files of this machine for the job. Returns the addresses to load: those of the uploaded objects, and
    the unchanged addresses of other files.

    A repeated upload replaces the objects. Files with other content get other addresses, so that their run is not taken
    for the run of earlier files with the same names. Raises NotFound and InvalidInput as a load of the files here does.
    """
    own = [path for path in paths if not is_on_s3(path)]
    sources = find_sources(own, form)
    if datasets := [source.path for source in sources if source.format is Format.LANCE]:
        raise InvalidInput(
            "a Lance dataset is not uploaded for a load",
            where=datasets[0],
            remedy="copy it to S3, and give its address",
        )
    objects, folder = S3Objects(root), f"{_folder(job_id)}/{identified(sources).digest}"
    total = sum(Path(source.path).stat().st_size for source in sources)
    addresses, done = [], 0
    with Meter(as_json=as_json) as meter:
        on_progress = meter.begin(job_id, "uploading")
        for number, source in enumerate(sources):
            file = Path(source.path)
            on_progress(Progress(file.name, done, total, "bytes"))
            key = "/".join((folder, str(number), *folders_of(source.folders), file.name))
            objects.upload(key, file)
            addresses.append(f"{root.rstrip('/')}/{key}")
            done += file.stat().st_size
    return (*(path for path in paths if is_on_s3(path)), *addresses)


def remove_uploads(root: str, job_id: str) -> None:
    """Removes what was uploaded for a completed job."""
    objects = S3Objects(root)
    objects.delete(objects.list(_folder(job_id)))


def _folder(job_id: str) -> str:
    """Returns the folder of a job. Its name is a hash, because ids of jobs are untrusted text."""
    return f"{FOLDER}/{blake2b(job_id.encode(), digest_size=16).hexdigest()}"
