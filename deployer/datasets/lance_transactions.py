"""Transactions of Lance: the operation of a commit, sending a commit, and the transactions that made past versions.

Lance may have taken a commit that raised an error, and would take it twice if it were sent again. So `send` reads the
dataset before it reports the outcome of a commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from deployer.datasets.commit_metadata import CommitMetadata, commit_metadata_of, properties_of
from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import first_line
from deployer.datasets.files.column_files import to_data_file
from deployer.datasets.storage.options import storage_options
from deployer.errors import NotFound

if TYPE_CHECKING:
    import lance

    from deployer.datasets.files.column_files import ColumnFile
    from deployer.datasets.files.writer import WrittenFragment


class Operation(Protocol):
    """The change that a commit makes to a dataset."""

    @property
    def removed(self) -> tuple[int, ...] | None:
        """Ids of the fragments that the new ones replace. None: what the commit did is read from the dataset."""

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        """Returns the operation on that dataset in Lance's form."""


@dataclass(frozen=True, slots=True)
class Append:
    """Adds fragments, which are given as Lance's own JSON."""

    fragments: Sequence[Mapping[str, Any]]
    removed: ClassVar[tuple[int, ...]] = ()

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance
        from lance.fragment import FragmentMetadata

        return lance.LanceOperation.Append([FragmentMetadata.from_json(json.dumps(each)) for each in self.fragments])


@dataclass(frozen=True, slots=True)
class RewrittenGroup:
    """Fragments as they were read (Lance's metadata), and the new fragments with all of their live rows."""

    old: tuple[Any, ...]
    new: tuple[WrittenFragment, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Replaces old fragments by new ones, group by group."""

    groups: Sequence[RewrittenGroup]

    @property
    def removed(self) -> tuple[int, ...]:
        return tuple(sorted(fragment.id for group in self.groups for fragment in group.old))

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance

        return lance.LanceOperation.Rewrite([_group(each) for each in self.groups], [])


def _group(rewritten: RewrittenGroup) -> Any:
    import lance

    return lance.LanceOperation.RewriteGroup(list(rewritten.old), [_new_fragment(each) for each in rewritten.new])


def _new_fragment(written: WrittenFragment) -> Any:
    from lance.fragment import FragmentMetadata

    fragment = FragmentMetadata.from_json(json.dumps(written.metadata))
    fragment.row_id_meta = written.row_ids or fragment.row_id_meta
    return fragment


@dataclass(frozen=True, slots=True)
class Restore:
    """Makes the rows, columns and indexes those of an earlier version."""

    version: int
    removed: ClassVar[None] = None

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance

        return lance.LanceOperation.Restore(self.version)


@dataclass(frozen=True, slots=True)
class Fence:
    """Projects onto all columns, which changes nothing.

    Lance refuses an append that was prepared before a projection that does not promise to keep columns nullable, and
    such a projection that was prepared before an append.
    """

    removed: ClassVar[None] = None

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance

        return lance.LanceOperation.Project(dataset.lance_schema)


@dataclass(frozen=True, slots=True)
class RemoveFragments:
    """Removes fragments; `why` is the predicate that Lance's record of the deletion shows."""

    fragment_ids: Sequence[int]
    why: str
    removed: ClassVar[None] = None

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance

        return lance.LanceOperation.Delete([], list(self.fragment_ids), self.why)


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """Removes rows from fragments, and adds fragments; rows with new values are removed and added.

    `changed` are fragments as Lance returned them with a longer deletion file, `removed_ids` those that lost all rows.
    `guard` is an unchanged fragment. It is listed so that Lance refuses the second of two changes of rows that were
    prepared on the same version, even where they touch different fragments: each change depends on all rows. `why` is
    the predicate that Lance's record of a deletion shows.
    """

    changed: Sequence[Any]
    removed_ids: Sequence[int] = ()
    added: Sequence[WrittenFragment] = ()
    guard: Any = None
    why: str = "true"
    removed: ClassVar[tuple[int, ...]] = ()

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance

        changed, removed = list(self.changed), list(self.removed_ids)
        if self.guard is not None and self.guard.id not in {*(each.id for each in changed), *removed}:
            changed.append(self.guard)
        if not self.added:  # unlike `Update`, a deletion does not conflict with a column load or a schema change
            return lance.LanceOperation.Delete(changed, removed, self.why)
        new = [_new_fragment(each) for each in self.added]
        return lance.LanceOperation.Update(
            removed_fragment_ids=removed, updated_fragments=changed, new_fragments=new, fields_modified=[]
        )


@dataclass(frozen=True, slots=True)
class TakenRows:
    """The fragments from which a commit removed rows: the number of live rows in each, and the fragments that lost all
    rows."""

    left: Mapping[int, int]
    removed: tuple[int, ...]

    @staticmethod
    def of(operation: Any) -> TakenRows | None:
        """Returns the fragments from which Lance's operation removed rows; None where it does not change rows.
        Fragments that the operation lists unchanged are included."""
        changed = getattr(operation, "updated_fragments", None)
        if changed is None:
            return None
        removed = getattr(operation, "deleted_fragment_ids", None) or getattr(operation, "removed_fragment_ids", None)
        return TakenRows({each.id: each.num_rows for each in changed}, tuple(sorted(removed or ())))


@dataclass(frozen=True, slots=True)
class FillColumns:
    """Adds values of columns to fragments, as one more file for each fragment. All files have the same columns."""

    files: Sequence[ColumnFile]
    removed: ClassVar[None] = None

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        import lance

        groups = [
            lance.LanceOperation.DataReplacementGroup(each.fragment_id, to_data_file(each)) for each in self.files
        ]
        return lance.LanceOperation.DataReplacement(groups)


@dataclass(frozen=True, slots=True)
class ChangeDataset:
    """An operation that is valid for one version only: a change of the schema, of a column's values, or of indexes."""

    operation: lance.LanceOperation.BaseOperation
    removed: ClassVar[None] = None

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        return self.operation


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome that Lance has the commit. `dataset` is the dataset at that commit; None where the commit raised an
    error but the dataset has it."""

    dataset: lance.LanceDataset | None


# : `races lost`: other commits were always first. `overtaken`: storage or Lance reports a concurrent change, and not a
# : conflict. `removed`: the dataset no longer exists. `invalid`: Lance does not accept the operation.
Reason = Literal["races lost", "conflict", "overtaken", "removed", "invalid"]


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The outcome that Lance does not have the commit."""

    reason: Reason
    failure: Exception


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The outcome of a commit that failed for another reason. Lance does not have it now, and may have it later."""

    failure: Exception


Outcome = Taken | NotTaken | InDoubt


def prepare(
    dataset: lance.LanceDataset,
    operation: Operation,
    metadata: Sequence[CommitMetadata] = (),
    properties: Mapping[str, str] | None = None,
) -> lance.Transaction:
    """Returns the transaction on top of the opened version. `properties` are stored beside the commit metadata."""
    import lance

    return lance.Transaction(
        read_version=int(dataset.version),
        operation=operation.to_lance(dataset),
        transaction_properties={**(properties_of(metadata) if metadata else {}), **(properties or {})},
    )


def send(location: str, dataset: lance.LanceDataset, transaction: lance.Transaction) -> Outcome:
    """Sends the transaction, and finds out its outcome. A transaction that was not taken may be sent again.

    Raises DeployerError where the commit raised and the dataset cannot be read either.
    """
    import lance

    try:
        return Taken(lance.LanceDataset.commit(dataset, transaction, storage_options=storage_options(location)))
    except Exception as failure:
        return _outcome(location, transaction, failure)


def _outcome(location: str, transaction: lance.Transaction, failure: Exception) -> Outcome:
    try:
        newest = open_dataset(location)
    except NotFound:
        return NotTaken("removed", failure)
    if _holds(newest, transaction):
        return Taken(None)
    reason = reason_of(failure)
    return NotTaken(reason, failure) if reason is not None else InDoubt(failure)


def reason_of(failure: Exception) -> Reason | None:
    """Returns why Lance refused a commit, from its message; None where the message is not a refusal.

    Lance abandons a commit that loses all races, after half a minute.
    """
    message = str(failure).lower()
    if "too many concurrent writers" in message:
        return "races lost"
    if "conflict" in message:
        return "conflict"
    if "concurrent" in first_line(failure).lower():
        return "overtaken"
    return "invalid" if "invalid user input" in message else None


def _holds(dataset: lance.LanceDataset, transaction: lance.Transaction) -> bool:
    """Returns whether the transaction made one of the versions after the version that it was prepared on."""
    found = (transaction_of(dataset, version) for version in range(transaction.read_version + 1, dataset.version + 1))
    return any(each is not None and each.uuid == transaction.uuid for each in found)


def commit_now(
    location: str,
    dataset: lance.LanceDataset,
    operation: Operation,
    metadata: Sequence[CommitMetadata] = (),
    properties: Mapping[str, str] | None = None,
) -> None:
    """Commits on top of the opened version. Raises Lance's own failure unless Lance has the commit."""
    outcome = send(location, dataset, prepare(dataset, operation, metadata, properties))
    if not isinstance(outcome, Taken):
        raise outcome.failure


def lance_release() -> str:
    """Returns the installed release of Lance; the JSON of fragments is that of one release."""
    import lance

    return str(lance.__version__)


def metadata_since(dataset: lance.LanceDataset, version: int) -> dict[int, tuple[CommitMetadata, ...]]:
    """Returns the metadata of deployer's commits after that version, by the version that each made, in order."""
    found = {each: metadata_at(dataset, each) for each in range(version + 1, dataset.version + 1)}
    return {each: infos for each, infos in found.items() if infos}


def metadata_at(dataset: lance.LanceDataset, version: int) -> tuple[CommitMetadata, ...]:
    """Returns the metadata of the commit that made the version; none where another program made it, or it is no longer
    kept."""
    transaction = transaction_of(dataset, version)
    return commit_metadata_of(transaction.transaction_properties) if transaction is not None else ()


def transaction_of(dataset: lance.LanceDataset, version: int) -> Any:
    """Returns Lance's record of the commit that made the version; None when it is no longer kept."""
    try:
        return dataset.read_transaction(version)
    except Exception:
        return None
