"""The check whether a dataset on a disk has the files that its newest version needs, as far as names and sizes show.

Every listing of tables runs this check for every table. So the check lists two folders and reads the end of one
manifest. It opens the dataset only where the sizes do not match. In a bucket each listing is a request, so there only
`deployer state verify` checks.
"""

from __future__ import annotations

import os
import stat
from urllib.parse import quote

from deployer.datasets.dataset import newest_manifest, not_a_manifest, open_dataset
from deployer.datasets.errors import as_deployer_error, lance_errors, lost_data, missing_file
from deployer.errors import Corrupt

_ATTEMPTS = 3  #: how often the check starts again because others commit and remove the files of the previous version
_FOOTER = 16  #: bytes at the end of a manifest: message position (8), format version (4), magic number (4)
_MARK = b"LANC"


def require_whole(location: str, recorded: int, manifest: str = "") -> None:
    """Raises Corrupt or NotFound where a file of the newest version is missing or cut short.

    `recorded` is the size in bytes of the data files in the table's log. `manifest` is the name of the newest manifest,
    for a caller that has just listed the manifests. Does nothing for a bucket.
    """
    if "://" in location:
        return
    for attempt in range(_ATTEMPTS):
        manifest = manifest or newest_manifest(location)
        try:
            with lance_errors(location):
                _require_manifest(location, manifest)
                if recorded and _bytes_of_data(location) < recorded:
                    _require_data_files(location)
            return
        except Corrupt:
            before, manifest = manifest, newest_manifest(location)
            if attempt == _ATTEMPTS - 1 or manifest == before:
                raise


def _require_manifest(location: str, name: str) -> None:
    opened = os.open(f"{location}/_versions/{name}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be a pipe
    try:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            raise not_a_manifest(name, location)
        footer = os.pread(opened, _FOOTER, max(0, about.st_size - _FOOTER))
    finally:
        os.close(opened)
    if len(footer) < _FOOTER or not footer.endswith(_MARK) or int.from_bytes(footer[:8], "little") >= about.st_size:
        raise Corrupt(
            f"the manifest {name} is damaged",
            where=location,
            remedy="restore it from a backup, or delete the table: `deployer table delete TABLE --force`",
        )


def _bytes_of_data(location: str) -> int:
    try:
        with os.scandir(f"{location}/data") as found:
            return sum(each.stat().st_size for each in found)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as failure:
        raise as_deployer_error(failure, location) from failure


def _require_data_files(location: str) -> None:
    """Compares each data file of the newest version with its entry in the manifest."""
    for fragment in open_dataset(location).get_fragments():
        for file in fragment.metadata.files:
            if getattr(file, "base_id", None) is not None:
                continue  # it is in another dataset, as in a shallow clone
            path = f"{location}/data/{quote(file.path, safe='')}"
            try:
                size = os.stat(path).st_size  # noqa: PTH116 (a dataset has 10,000 files and more)
            except (FileNotFoundError, NotADirectoryError):
                raise missing_file(path) from None
            if size < (file.file_size_bytes or 0):
                what = f"the data file is cut short: it has {size:,} of {file.file_size_bytes:,} bytes"
                raise Corrupt(what, where=path, remedy=lost_data())
