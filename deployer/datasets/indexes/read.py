"""The indexes of a table: the indexes of its dataset, and the declarations that the state records.

Lance returns an index's type, columns and most of its parameters. It does not return the declared number of partitions,
and changes that number by itself. Therefore the table's properties record the declarations, for as long as the
dataset's index fits them. The roll-forward detects an index that others drop, add or build differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from deployer.errors import InvalidInput
from deployer.specs.declarations.indexes import index_from_json, index_to_json
from deployer.specs.model import IndexSpec
from deployer.specs.schema.index_kinds import (
    KINDS,
    NUM_BITS,
    VECTOR_KINDS,
    all_parameters,
    declared_parameters,
    parameter_names,
)
from deployer.specs.types.column_names import name_fault
from deployer.specs.validation.plain_values import mapping, text, texts, whole
from deployer.state.log.updates import SetTableProperties

if TYPE_CHECKING:
    import lance

    from deployer.state.model.entities import TableProperties, TableState

#: The key of `TableProperties.declared` that remembers indexes: their JSON form and their status, by name.
INDEXES = "indexes"
#: `pending`: waits for enough rows; `building`: begun, and perhaps interrupted; `ready`: the dataset has the index.
Status = Literal["pending", "building", "ready"]

_OF_LANCE = "__lance_"  # names of indexes that Lance keeps for itself
_HINTS: Mapping[str, str] = {"max_iterations": "max_iters", "sample_rate": "sample_rate"}
_UNREPORTED = frozenset(("custom_stop_words",))  # pylance 14 always returns none
_KINDS: Mapping[str, str] = {
    "BTree": "btree",
    "Bitmap": "bitmap",
    "LabelList": "label_list",
    "Inverted": "inverted",
}


@dataclass(frozen=True, slots=True)
class ObservedIndex:
    """An index of the dataset. `parameters` are those that Lance always returns, including defaults. `segments` are the
    ids of its parts, and `dimension` is the size of its column's vectors (0 for other columns)."""

    index: IndexSpec
    parameters: Mapping[str, Any]
    segments: frozenset[str]
    fragments: frozenset[int]
    dimension: int = 0

    def fits(self, declared: IndexSpec) -> bool:
        """Returns whether the index may have been built from that declaration. The column's name is not compared."""
        wanted = all_parameters(declared.kind, declared.parameters, self.dimension)
        return declared.kind == self.index.kind and all(
            _plain(wanted.get(name)) == value for name, value in self.parameters.items()
        )


@dataclass(frozen=True, slots=True)
class RememberedIndex:
    """A declaration, and the table's dataset that last had the index: a rewrite makes another dataset, without the
    index.

    While the index is being built or waits, `before` is the index that it replaces, and `segments` are those of that
    index.
    """

    index: IndexSpec
    status: Status
    dataset: int = 1
    before: IndexSpec | None = None
    segments: frozenset[str] = frozenset()

    def to_json(self) -> dict[str, Any]:
        form: dict[str, Any] = {"index": index_to_json(self.index), "status": self.status, "dataset": self.dataset}
        if self.before is not None:
            form["before"] = index_to_json(self.before)
        if self.segments:
            form["segments"] = sorted(self.segments)
        return form

    @staticmethod
    def of(form: Mapping[str, Any]) -> RememberedIndex:
        """Returns the inverse of `to_json`. Raises InvalidInput for another form."""
        status = text(form, "status")
        if status not in get_args(Status):
            raise InvalidInput(f"`status` of an index is {status[:40]!r}")
        before = mapping(form, "before", {})
        return RememberedIndex(
            _index(mapping(form, "index")),
            cast(Status, status),
            whole(form, "dataset"),
            _index(before) if before else None,
            frozenset(texts(form, "segments")),
        )


def _index(form: Mapping[str, Any]) -> IndexSpec:
    return index_from_json({key: _plain(value) for key, value in form.items()})


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def remembered_indexes(properties: TableProperties) -> dict[str, RememberedIndex]:
    """Returns the declarations by name."""
    forms = mapping(properties.declared, INDEXES, {})
    return {name: RememberedIndex.of(mapping(forms, name)) for name in forms}


def with_indexes(properties: TableProperties, indexes: Mapping[str, RememberedIndex]) -> dict[str, Any]:
    """Returns the table's `declared` with these declarations."""
    others = {name: value for name, value in properties.declared.items() if name != INDEXES}
    forms = {name: indexes[name].to_json() for name in sorted(indexes)}
    return {**others, **({INDEXES: forms} if forms else {})}


def live_indexes(state: TableState) -> tuple[IndexSpec, ...]:
    """Returns the table's indexes by name. Indexes that wait for rows are included; those whose build was interrupted
    are not."""
    found = (_live(each, state.dataset) for each in remembered_indexes(state.properties).values())
    return tuple(sorted((index for index in found if index is not None), key=lambda index: index.name))


def _live(remembered: RememberedIndex, dataset: int) -> IndexSpec | None:
    if remembered.status == "pending":
        return remembered.index
    if remembered.dataset != dataset:
        return None
    return remembered.index if remembered.status == "ready" else remembered.before


def observed_indexes(dataset: lance.LanceDataset) -> dict[str, ObservedIndex]:
    """Returns the indexes of the opened version by name, without those that no spec can declare."""
    described = [each for each in dataset.describe_indices() if not each.name.startswith(_OF_LANCE)]
    observed = {each.name: _observed(dataset, each) for each in described}
    return {name: each for name, each in observed.items() if _declarable(each.index)}


def _declarable(index: IndexSpec) -> bool:
    return index.kind in KINDS and len(index.columns) == 1 and not name_fault(index.name, nested=True)


def _observed(dataset: lance.LanceDataset, described: Any) -> ObservedIndex:
    kind = _KINDS.get(described.index_type, described.index_type.lower())
    columns, details = tuple(described.field_names), described.details or {}
    parameters = _parameters(kind, details)
    declared = declared_parameters(kind, {**parameters, **_training(details)})
    segments = described.segments
    return ObservedIndex(
        IndexSpec(described.name, columns, kind, declared),
        parameters,
        frozenset(str(segment.uuid) for segment in segments),
        frozenset(fragment for segment in segments for fragment in segment.fragment_ids),
        vector_size(dataset, columns[0]) if kind in VECTOR_KINDS and columns else 0,
    )


def _parameters(kind: str, details: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "inverted":
        shown = (name for name in parameter_names(kind) if name in details and name not in _UNREPORTED)
        return {name: _plain(details[name]) for name in shown}
    found: dict[str, Any] = {}
    if metric := details.get("metric_type"):
        found["metric"] = str(metric).lower()
    if graph := details.get("hnsw"):
        found |= {"m": graph["max_connections"], "ef_construction": graph["construction_ef"]}
    if (compression := details.get("compression")) and "num_sub_vectors" in compression:
        found["num_sub_vectors"] = compression["num_sub_vectors"]
        found["num_bits"] = compression.get("num_bits", NUM_BITS)
    return found


def _training(details: Mapping[str, Any]) -> dict[str, Any]:
    """Returns how the index was trained, from hints that Lance keeps for later builds. Lance does not guarantee these
    hints."""
    hints = details.get("runtime_hints") or {}
    found = {name: str(hints.get(f"lance.ivf.{hint}")) for name, hint in _HINTS.items()}
    return {name: int(value) for name, value in found.items() if value.isdecimal()}


def vector_size(dataset: lance.LanceDataset, path: str) -> int:
    """Returns how many values a vector of the column of that dotted path has; 0 for columns of other types."""
    first, *rest = path.split(".")
    found = dataset.schema.field(first).type
    for name in rest:
        found = found.field(name).type
    return int(getattr(found, "list_size", 0))


def reconciled(
    remembered: Mapping[str, RememberedIndex], observed: Mapping[str, ObservedIndex], dataset: int
) -> dict[str, RememberedIndex]:
    """Returns the declarations to record when the table's dataset of that number has the `observed` indexes."""
    found = {name: _known(remembered.get(name), index, dataset) for name, index in observed.items()}
    for name, each in remembered.items():
        if name in observed:
            continue
        if each.status != "ready" or each.dataset != dataset:  # else another program dropped it
            found[name] = replace(each, before=None, segments=frozenset())
    return found


def _known(remembered: RememberedIndex | None, observed: ObservedIndex, dataset: int) -> RememberedIndex:
    if remembered is None:
        return RememberedIndex(observed.index, "ready", dataset)
    declared = remembered.index
    of_before = bool(remembered.segments & observed.segments)
    if of_before and remembered.status != "ready":
        return remembered
    if remembered.status == "building" and not observed.fits(declared):
        return remembered
    if observed.fits(declared):
        return RememberedIndex(replace(declared, columns=observed.index.columns), "ready", dataset)
    return RememberedIndex(observed.index, "ready", dataset)


def index_updates(dataset: lance.LanceDataset, state: TableState) -> list[SetTableProperties]:
    """Returns the update that makes the state record the indexes of the opened version; empty when the state is up to
    date."""
    remembered = remembered_indexes(state.properties)
    found = reconciled(remembered, observed_indexes(dataset), state.dataset)
    if found == remembered:
        return []
    return [SetTableProperties({"declared": with_indexes(state.properties, found)})]
