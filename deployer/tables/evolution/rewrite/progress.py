"""The progress of a rewrite, stored beside the dataset that it writes, so that a killed rewrite can resume.

A rewrite copies its source in rounds: the first round copies one version, each later round the fragments added since. A
round is planned once (`plan.json`: the source and its ranges), and notes each written range in a file of its own, which
is written as a whole or not at all.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.ordering.key_ranges import KeyRange
from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import NOTES, remove_within
from deployer.errors import Corrupt, DeployerError
from deployer.platform.storage.objects import Missing, ObjectStore
from deployer.platform.system.failpoints import reached
from deployer.state.log.codec import decode, encode
from deployer.state.model.entities import JSON, Partition
from deployer.state.model.keys import decode_key, encode_key
from deployer.tables.evolution.rewrite.lock import NO_JOB, Holder, held
from deployer.tables.ingest.files.model import Format, Source, Split
from deployer.tables.layout.partitions.key_ranges import Ranges


@dataclass(frozen=True, slots=True)
class Round:
    """One copy: the version of the source that the new dataset has afterwards, the splits to read, the ranges to
    write."""

    number: int
    source_version: int
    splits: tuple[Split, ...]
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class _Note:
    """A written fragment in the form of the ledger; `metadata` is Lance's own JSON."""

    metadata: Mapping[str, JSON]
    partition: str | None
    rows: int
    keys: KeyRange | None
    sorted: bool

    def written(self) -> WrittenFragment:
        return WrittenFragment(dict(self.metadata), self.partition, self.rows, self.keys, self.sorted)


@dataclass(frozen=True, slots=True)
class RangeLedger:
    """The notes of the written ranges of one round; tasks in other processes use them too."""

    folder: str  #: a path or URI

    def record(self, number: int, written: Sequence[WrittenFragment]) -> None:
        notes = [_Note(each.metadata, each.partition, each.rows, each.keys, each.sorted) for each in written]
        _put(objects_at(self.folder), f"{number}.json", [encode(note) for note in notes])
        reached("tables.rewrite.range-written")

    def finished(self) -> dict[int, tuple[WrittenFragment, ...]]:
        """Returns the written fragments, by the number of their range."""
        with _readable(self.folder):
            return {number: tuple(decode(_Note, each).written() for each in found) for number, found in self._notes()}

    def rows(self, besides: Collection[int] = ()) -> dict[int, int]:
        """Returns how many rows were written, by the number of their range; those of `besides` are not looked up."""
        with _readable(self.folder):
            return {number: sum(each["rows"] for each in found) for number, found in self._notes(besides)}

    def _notes(self, besides: Collection[int] = ()) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        objects = objects_at(self.folder)
        for path in objects.list(""):
            number = path.removesuffix(".json")
            if number.isdecimal() and int(number) not in besides:
                yield int(number), _get(objects, path)


class Progress:
    """The notes of the rewrite that writes the dataset at `location`, a path or URI."""

    def __init__(self, location: str) -> None:
        self._location, self._folder = location, f"{location}/{NOTES}"
        self._objects = objects_at(self._folder)

    def held(self, holder: Holder = NO_JOB) -> AbstractContextManager[bool]:
        """Excludes other processes from the same rewrite.

        Raises Conflict while another process holds it. Yields False where the rewrite has to begin again, at another
        place (see `rewrite_lock`).
        """
        return held(self._location, f"{NOTES}/lock", holder)

    def remove(self) -> None:
        """Removes the notes of a completed rewrite."""
        with suppress(OSError, DeployerError):  # they do no harm
            remove_within(self._location, NOTES)

    def tree(self) -> tuple[Partition, ...] | None:
        """Returns the partition tree that rows are placed in; None when none was chosen yet."""
        with _readable(self._folder):
            found = _get(self._objects, "partitions.json")
            return None if found is None else tuple(decode(Partition, each) for each in found)

    def choose_tree(self, tree: Sequence[Partition]) -> None:
        _put(self._objects, "partitions.json", [encode(each) for each in tree])

    def ledger(self, number: int) -> RangeLedger:
        return RangeLedger(f"{self._folder}/round-{number}")

    def round(self, number: int, location: str, kinds: Sequence[str]) -> Round | None:
        """Returns the plan of a round over the source at `location`; `kinds` are of the new row keys. None: not planned
        yet."""
        with _readable(self._folder):
            found = _get(self._objects, f"round-{number}/plan.json")
            if found is None:
                return None
            source = Source(location, Format.LANCE, location, False, int(found["source_version"]))
            splits = tuple(Split(source=source, **each) for each in found["splits"])
            points = tuple(decode_key(kinds, b64decode(point)) for point in found["points"])
            return Round(number, source.version or 0, splits, Ranges(points, tuple(found["partitions"])))

    def plan_round(self, planned: Round, kinds: Sequence[str]) -> None:
        document = {
            "source_version": planned.source_version,
            "splits": [{k: v for k, v in asdict(split).items() if k != "source"} for split in planned.splits],
            "points": [b64encode(encode_key(kinds[: len(point)], point)).decode() for point in planned.ranges.splits],
            "partitions": planned.ranges.partitions,
        }
        _put(self._objects, f"round-{planned.number}/plan.json", document)


@contextmanager
def _readable(folder: str) -> Iterator[None]:
    """Wraps reads of notes, which are beside the data. Raises Corrupt for notes that no rewrite wrote."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Corrupt(
            f"the notes of an unfinished rewrite cannot be read: {type(error).__name__}",
            where=folder.rpartition(f"/{NOTES}")[0],
            remedy="delete this folder, of which the table has all rows; the next `deployer up` begins again",
        ) from error


def _put(objects: ObjectStore, path: str, document: Any) -> None:
    objects.put(path, json.dumps(document).encode())


def _get(objects: ObjectStore, path: str) -> Any:
    try:
        return json.loads(objects.get(path))
    except Missing:
        return None
