"""The files of a place to load: the new ones, in the order of their arrival, divided into commits. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from deployer.services.kinds.ingest.landing import LandedFile
from deployer.services.kinds.ingest.options import IngestOptions
from deployer.services.kinds.ingest.record import LoadedFile, Record
from deployer.services.kinds.ingest.set_aside import ChangedFile, NotLoaded

SameContent = Callable[[LandedFile, LoadedFile], bool]


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """The files of a place by what a run does about them.

    `new` files are to be loaded. `changed` files have changed since they were loaded. `aside` files stay set aside.
    """

    new: tuple[LandedFile, ...]
    changed: tuple[ChangedFile, ...]
    aside: tuple[str, ...]


def plan_files(
    landed: Iterable[LandedFile],
    record: Record,
    not_loaded: NotLoaded,
    options: IngestOptions,
    same: SameContent,
    now: int,
) -> PlannedFiles:
    """Returns the plan for the files of a place at `now` (ms). `same` says whether a file has its loaded content."""
    new, changed, aside = list[LandedFile](), list[ChangedFile](), list[str]()
    for file in landed:
        known, wrong = record.of(file.path), not_loaded.files.get(file.path)
        if known is not None and (known.tag == file.tag or same(file, known)):
            continue
        if known is not None and options.on_change == "report":
            seen = not_loaded.changed.get(file.path)
            at = seen.at if seen is not None and seen.tag == file.tag else now
            changed.append(ChangedFile(file.path, known.tag, file.tag, file.bytes, at))
        elif wrong is not None and wrong.tag == file.tag and options.on_error == "set_aside":
            aside.append(file.path)
        else:
            new.append(file)
    new.sort(key=lambda each: (each.changed, each.path))
    return PlannedFiles(tuple(new), tuple(changed), tuple(aside))


def commits_of(files: Sequence[LandedFile], options: IngestOptions) -> Iterator[Sequence[LandedFile]]:
    """Yields the files of each commit, in order. An overwrite is always one commit, since a second one would replace
    the rows of the first."""
    if options.mode == "overwrite":
        yield from [files] if files else []
        return
    part: list[LandedFile] = []
    size = 0
    for each in files:
        if part and (len(part) >= options.max_files or size + each.bytes > options.max_bytes):
            yield part
            part, size = [], 0
        part.append(each)
        size += each.bytes
    if part:
        yield part
