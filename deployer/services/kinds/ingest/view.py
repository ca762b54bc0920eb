"""The files of a table's `ingest` as people see them: loaded files, files set aside, and the forecast of a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

from deployer.errors import NotFound
from deployer.platform.system.clock import Clock
from deployer.platform.text.formatting import count, size
from deployer.services.definition import options_of
from deployer.services.kinds.ingest.landing import Landings
from deployer.services.kinds.ingest.options import IngestOptions
from deployer.services.kinds.ingest.planning import commits_of, plan_files
from deployer.services.kinds.ingest.record import FileLists
from deployer.services.kinds.ingest.set_aside import NotLoaded, NotLoadedFiles
from deployer.state.model.times import TIME
from deployer.tables.open_table import ReadTable

FileStatus = Literal["LOADED", "SET ASIDE", "CHANGED"]


@dataclass(frozen=True, slots=True)
class FileView:
    """One file. `at` (ms) is when it was loaded, set aside, or first seen changed. `lance_version` is the version of
    its load."""

    path: str
    status: FileStatus
    bytes: int
    at: int = field(metadata=TIME)
    lance_version: int | None = None
    reason: str = ""


def files_of(table: ReadTable) -> list[FileView]:
    """Returns the recorded files: first those that need attention, then the loaded ones, the newest first.

    Does not list the place itself. Raises Corrupt for a damaged record.
    """
    record = FileLists(table.root, table.entry.table_id).read(table.state)
    found = NotLoadedFiles(table.root, table.entry.table_id).read()
    aside = [FileView(each.path, "SET ASIDE", each.bytes, each.at, None, each.reason) for each in found.files.values()]
    changed = [
        FileView(each.path, "CHANGED", each.bytes, each.at, None, "it is another file than the one that was loaded")
        for each in found.changed.values()
    ]
    loaded = [
        FileView(each.path, "LOADED", each.bytes, each.at, each.lance_version)
        for each in record.files.values()
        if each.path not in found.changed
    ]
    loaded.sort(key=lambda each: (-each.at, each.path))
    return [*sorted(aside, key=lambda each: each.path), *sorted(changed, key=lambda each: each.path), *loaded]


def retry(root: str, table_id: str, paths: Collection[str]) -> Sequence[str]:
    """Makes the next run try again the given files that were set aside, or all of them; returns their paths.

    Raises NotFound for a path that is not set aside.
    """
    stored = NotLoadedFiles(root, table_id)
    now = stored.read()
    for path in paths:
        if path not in now.files:
            raise NotFound(
                "the file is not set aside", where=path, remedy="`deployer service files TABLE` lists those that are"
            )
    wanted = tuple(paths) or tuple(now.files)
    stored.change(lambda newest: NotLoaded(newest.without(wanted).files, newest.changed))
    return wanted


def forecast(table: ReadTable) -> str:
    """Returns a description of what the next run would load. Lists the place and opens no file."""
    options = IngestOptions.of(options_of(table.state, "INGEST"))
    place = Landings.of(options.files, table.root, any_name=options.format is not None)
    if options.queue:
        return "loads the files that messages of its queue name"
    record = FileLists(table.root, table.entry.table_id).read(table.state)
    not_loaded = NotLoadedFiles(table.root, table.entry.table_id).read()
    found = plan_files(place.list(), record, not_loaded, options, lambda _file, _known: False, Clock().now())
    if not found.new:
        return f"nothing: no new file is at {place.files}"
    commits = sum(1 for _ in commits_of(found.new, options))
    total = size(sum(each.bytes for each in found.new))
    return f"loads {count(len(found.new), 'file')}, {total}, in {count(commits, 'commit')}"
