"""Transactions of Lance: what a commit does to a dataset, sending it, and the transactions that made past versions.

Lance may have taken a commit that raised, and takes it twice when it is simply sent again. So `send` looks into the
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
    """The change of a dataset by a commit."""

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
    """Fragments as they were read (Lance's metadata), and what was written of all of their rows that are left."""

    old: tuple[Any, ...]
    new: tuple[WrittenFragment, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Puts new fragments in the place of old ones, group by group."""

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
    """Takes rows out of fragments, and adds fragments; rows that get other values are taken out and added.

    `changed` are fragments as Lance gave them with a longer deletion file, `removed_ids` those that lost all rows.
    `guard` is a fragment as it is. It is listed so that Lance refuses the second of any two changes of rows that were
    prepared on one version, also where they touch different fragments: each is a function of all rows. `why` is the
    predicate that Lance's record of a deletion shows.
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
        if not self.added:  # beside a deletion a column may be loaded, and the schema changed; beside `Update` not
            return lance.LanceOperation.Delete(changed, removed, self.why)
        new = [_new_fragment(each) for each in self.added]
        return lance.LanceOperation.Update(
            removed_fragment_ids=removed, updated_fragments=changed, new_fragments=new, fields_modified=[]
        )


@dataclass(frozen=True, slots=True)
class TakenRows:
    """The fragments that a commit took rows out of: how many are left in each, and those that lost all."""

    left: Mapping[int, int]
    removed: tuple[int, ...]

    @staticmethod
    def of(operation: Any) -> TakenRows | None:
        """Returns what Lance's operation took out; None where it is not a change of rows. Fragments that are listed as
        they were are among those that are left."""
        changed = getattr(operation, "updated_fragments", None)
        if changed is None:
            return None
        removed = getattr(operation, "deleted_fragment_ids", None) or getattr(operation, "removed_fragment_ids", None)
        return TakenRows({each.id: each.num_rows for each in changed}, tuple(sorted(removed or ())))


@dataclass(frozen=True, slots=True)
class FillColumns:
    """Gives fragments values of columns, one more file for each. All files have the same columns."""

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
    """An operation that was made for one version: of the schema, of a column's values, or of indexes."""

    operation: lance.LanceOperation.BaseOperation
    removed: ClassVar[None] = None

    def to_lance(self, dataset: lance.LanceDataset) -> lance.LanceOperation.BaseOperation:
        return self.operation


@dataclass(frozen=True, slots=True)
class Taken:
    """Lance has the commit. `dataset` is as the commit left it; None where the commit raised, and was found to be
    done."""

    dataset: lance.LanceDataset | None


#: `races lost`: others were always first. `overtaken`: storage or Lance reports a concurrent change, and not a
#: conflict. `removed`: the dataset does not exist any more. `invalid`: Lance does not accept the operation.
Reason = Literal["races lost", "conflict", "overtaken", "removed", "invalid"]


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Lance does not have the commit."""

    reason: Reason
    failure: Exception


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The commit failed for another reason. Lance does not have it now, and may have it later."""

    failure: Exception


Outcome = Taken | NotTaken | InDoubt


def prepare(
    dataset: lance.LanceDataset,
    operation: Operation,
    metadata: Sequence[CommitMetadata] = (),
    properties: Mapping[str, str] | None = None,
) -> lance.Transaction:
    """Returns the transaction on top of the opened version. `properties` are further ones, beside the commit
    metadata."""
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

    Lance gives a commit up that loses all races, which takes it half a minute.
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
    """Returns whether the transaction made one of the versions above the one that it was prepared on."""
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
    """Metadata of our commits above that version, by the version that each made, in order."""
    found = {each: metadata_at(dataset, each) for each in range(version + 1, dataset.version + 1)}
    return {each: infos for each, infos in found.items() if infos}


def metadata_at(dataset: lance.LanceDataset, version: int) -> tuple[CommitMetadata, ...]:
    """Metadata of the commit that made the version; none where it is not ours, or not known any more."""
    transaction = transaction_of(dataset, version)
    return commit_metadata_of(transaction.transaction_properties) if transaction is not None else ()


def transaction_of(dataset: lance.LanceDataset, version: int) -> Any:
    """Lance's record of the commit that made the version; None when it is no longer kept."""
    try:
        return dataset.read_transaction(version)
    except Exception:
        return None
