"""The definitions that computed the values in new files, for the files of loads and of changes of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.datasets.dataset import field_ids, open_dataset
from deployer.specs.types.arrow import computed_of, stored_schema
from deployer.specs.types.computed import COMPUTED_NOTE, Computed, ComputedByUdf
from deployer.state.model.files.computed_by import UNKNOWN, definitions_of, joined, to_text

if TYPE_CHECKING:
    from deployer.datasets.files.writer import WrittenFragment
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.model.entities import TableState


def with_load_definitions(
    written: Sequence[WrittenFragment], schema: bytes, location: str, dataset: LanceDataset | None
) -> Sequence[WrittenFragment]:
    """Returns the files of new rows with the definitions that computed their columns during the load.

    `schema` is the table's schema, in the state's form. A function may have skipped rows because of its error policy.
    If its column is null in a row of a file, the file is also recorded with an unknown definition, so that a backfill
    computes the nulls.
    """
    if COMPUTED_NOTE not in schema:  # most tables have none, and small appends come often
        return written
    found = {field.name: computed_of(field) for field in stored_schema(schema, location) if field.metadata}
    computed = {name: each for name, each in found.items() if each is not None and each.on_load}
    if not computed or not written:
        return written
    ids = field_ids(open_dataset(location) if dataset is None else dataset, computed)
    if len(ids) < len(computed):
        return written  # others changed the columns meanwhile: the commit is refused
    fields = dict(zip(computed, ids, strict=True))
    return [
        replace(each, computed=to_text({fields[name]: _identities(name, one, each) for name, one in computed.items()}))
        for each in written
    ]


def _identities(name: str, computed: Computed, written: WrittenFragment) -> tuple[str, ...]:
    leaves_out = isinstance(computed, ComputedByUdf) and name in written.unset
    return (computed.identity, UNKNOWN) if leaves_out else (computed.identity,)


def with_copied_definitions(
    written: Sequence[WrittenFragment], state: TableState, before: LanceDataset, after: str
) -> Sequence[WrittenFragment]:
    """Returns the files of rows that were copied into the dataset at `after`, with all definitions that computed values
    of the table, because it is unknown which rows are in which file. Lance's field ids are translated to those of the
    new dataset."""
    text = joined(file.computed for file in state.files)
    if not text:
        return written
    own = {field.id(): field.name() for field in before.lance_schema.fields()}
    new = {field.name(): field.id() for field in open_dataset(after).lance_schema.fields()}
    found = {new[own[number]]: each for number, each in definitions_of(text).items() if own.get(number) in new}
    return [replace(each, computed=to_text(found)) for each in written]


def with_definitions_of(
    written: Iterable[WrittenFragment], state: TableState, fragment_ids: Iterable[int]
) -> tuple[WrittenFragment, ...]:
    """Returns the files of changed rows with the definitions that may have computed their values.

    These are the definitions of the fragments in which the rows were before, and the unknown definition, because values
    may be null or rows new.
    """
    files = (state.files.get(number) for number in fragment_ids)
    text = joined(["", *(file.computed for file in files if file is not None)])
    return tuple(replace(each, computed=text) if text else each for each in written)
