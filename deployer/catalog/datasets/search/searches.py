"""Search indexes of datasets. An index is built from the instances of a component, the log names it, and each
registration adds new instances to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from deployer.catalog.datasets.model.record import DatasetRecord, RowVersion, SearchIndex, folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.model.rows import NewLayer, chunk_rows, layer_rows
from deployer.catalog.datasets.reads.index import DatasetIndex, Indexes
from deployer.catalog.datasets.search.instances import instances, no_instances
from deployer.datasets.files.named_rows import add_rows, remove_folder
from deployer.datasets.indexes.instances import (
    TextIndex,
    VectorIndex,
    build_instances,
    search_texts,
    search_vectors,
)
from deployer.errors import Conflict, Corrupt, InvalidInput, NotFound
from deployer.platform.system.failpoints import reached
from deployer.state.commits import LOST_RACE
from deployer.state.log.codec import Mismatch, decode
from deployer.state.model.entities import JSON

_ATTEMPTS = 5
_FOUND = ("rerun_segment_id", "rerun_segment_layer", "chunk_id", "timepoint", "instance_id", "instance")


@dataclass(frozen=True, slots=True)
class NewSearch:
    """The definition of an index to build. `config` is the index's description for clients."""

    entity: str
    component: str
    timeline: str
    index: TextIndex | VectorIndex
    config: bytes


@dataclass(frozen=True, slots=True)
class Searches:
    """The search indexes of datasets. Safe for threads and processes."""

    datasets: Datasets
    indexes: Indexes

    def create(self, dataset_id: str, wanted: NewSearch) -> SearchIndex:
        """Builds an index, which replaces an index of the same component.

        Raises NotFound for an unknown dataset, and where no value has a time on the index's timeline. Raises
        InvalidInput for values that are neither texts nor vectors of one length, and for settings that do not fit.
        """
        for _ in LOST_RACE.attempts(_ATTEMPTS):
            record = self.datasets.by_id(dataset_id)
            made = self._built(record, self.indexes.of(record), wanted)
            old = [each for each in record.searches if each.column == made.column]
            kept = tuple(each for each in record.searches if each.column != made.column)
            reached("catalog:before-naming-index")
            if self.datasets.is_replaced(record, replace(record, searches=(*kept, made))):
                self._remove_unsaved(dataset_id, old)
                return made
            remove_folder(self.place(dataset_id, made))
        raise Conflict(
            "other writers keep changing the dataset", where=dataset_id, remedy="try again when there are fewer writers"
        )

    def rebuild(self, dataset_id: str, search: SearchIndex) -> SearchIndex:
        """Builds an index again, from all present instances. Raises as `create` does."""
        return self.create(dataset_id, wanted_again(search))

    def delete(self, dataset_id: str, entity: str, component: str) -> list[SearchIndex]:
        """Deletes the index of a component; returns the deleted index, if any. Raises NotFound for an unknown
        dataset."""
        for _ in LOST_RACE.attempts(_ATTEMPTS):
            record = self.datasets.by_id(dataset_id)
            old = [each for each in record.searches if each.column == (entity, component)]
            if not old:
                return []
            kept = tuple(each for each in record.searches if each not in old)
            if self.datasets.is_replaced(record, replace(record, searches=kept)):
                self._remove_unsaved(dataset_id, old)
                return old
        raise Conflict(
            "other writers keep changing the dataset", where=dataset_id, remedy="try again when there are fewer writers"
        )

    def _remove_unsaved(self, dataset_id: str, searches: Sequence[SearchIndex]) -> None:
        """Removes the rows of indexes that the dataset no longer has, except those of indexes in a savepoint."""
        saved = {each.index_id for record in self.datasets.saved() for each in record.searches}
        for search in searches:
            if search.index_id not in saved:
                remove_folder(self.place(dataset_id, search))

    def search_texts(
        self, record: DatasetRecord, entity: str, component: str, text: str, limit: int | None = None
    ) -> pa.Table:
        """Returns instances that have a word of the text, the best first, with `_score`. Raises NotFound for a
        component without an index, and InvalidInput for an index of vectors."""

        def found(now: DatasetRecord) -> pa.Table:
            search = self._index(now, entity, component, "text")
            return search_texts(self.place(now.dataset_id, search), search.rows.named, text, limit, self._gone(now))

        return self._in_newest(record, found).select([*_FOUND, "_score"])

    def search_vectors(
        self, record: DatasetRecord, entity: str, component: str, vector: Sequence[float], count: int
    ) -> pa.Table:
        """Returns the `count` instances with the nearest vectors, with `_distance`. Raises NotFound for a component
        without an index, and InvalidInput for an index of texts, a vector of another length, and a count of 0."""
        if count < 1:
            raise InvalidInput("top_k is 0", remedy="ask for at least one result")
        query = pa.array(vector, pa.float32())

        def found(now: DatasetRecord) -> pa.Table:
            search = self._index(now, entity, component, "vector")
            if len(vector) != search.dimension:
                raise InvalidInput(
                    f"the vector has {len(vector)} numbers, and those of the index have {search.dimension}",
                    remedy="give a vector of that length",
                )
            place = self.place(now.dataset_id, search)
            return search_vectors(place, search.rows.named, query, count, search.metric, self._gone(now))

        return self._in_newest(record, found).select([*_FOUND, "_distance"])

    def _in_newest(self, record: DatasetRecord, find: Callable[[DatasetRecord], pa.Table]) -> pa.Table:
        """Returns the result of `find`; uses the newest index where the index of the record was replaced meanwhile."""
        try:
            return find(record)
        except (Corrupt, NotFound):
            now = self.datasets.by_id(record.dataset_id)
            if now.searches == record.searches:
                raise
            return find(now)

    def extended(
        self, record: DatasetRecord, layers: Sequence[NewLayer]
    ) -> tuple[tuple[SearchIndex, ...], dict[tuple[str, str], str]]:
        """Adds the instances of layers to the record's indexes. The layers' sources follow those of the record.

        Returns the indexes with their new versions, and the faults of layers that cannot be added, by the layer's key.
        If there are faults, nothing is added and the indexes are unchanged.
        """
        if not record.searches or not layers:
            return record.searches, {}
        rows, chunks = layer_rows(layers, record.sources, 0), chunk_rows(layers, record.sources)
        now = replace(record, chunks=RowVersion(0, chunks.num_rows))
        index = DatasetIndex(now, self.datasets.root, rows, chunks)
        found = list[tuple[SearchIndex, list[pa.Table]]]()
        faults = dict[tuple[str, str], str]()
        for search in record.searches:
            tables = list[pa.Table]()
            for source, layer in enumerate(layers, record.sources):
                try:
                    table = _instances(index, [source], search)
                except InvalidInput as failure:
                    faults[layer.key] = str(failure)
                    continue
                tables += [] if table is None else [table]
            found.append((search, tables))
        if faults:
            return record.searches, faults
        return tuple(self._added(record, search, tables) for search, tables in found), {}

    def _added(self, record: DatasetRecord, search: SearchIndex, tables: Sequence[pa.Table]) -> SearchIndex:
        if not tables:
            return search
        place = self.place(record.dataset_id, search)
        named = add_rows(place, search.rows.named, pa.concat_tables(tables), in_place=True)
        return replace(search, rows=RowVersion(named.version, named.rows))

    def _built(self, record: DatasetRecord, index: DatasetIndex, wanted: NewSearch) -> SearchIndex:
        is_text = isinstance(wanted.index, TextIndex)
        search = SearchIndex(
            self.datasets.clock.new_id(),
            wanted.entity,
            wanted.component,
            wanted.timeline,
            "text" if is_text else "vector",
            wanted.config,
            metric=wanted.index.metric if isinstance(wanted.index, VectorIndex) else "cosine",
            settings=_settings(wanted.index),
        )
        rows = _instances(index, index.source_of_layer.tolist(), search)
        if rows is None:
            raise no_instances(wanted.entity, wanted.component, wanted.timeline)
        dimension = 0 if is_text else int(rows.schema.field("instance").type.list_size)
        if isinstance(wanted.index, VectorIndex) and dimension % wanted.index.sub_vectors:
            raise InvalidInput(
                f"vectors of {dimension} numbers cannot be divided into {wanted.index.sub_vectors} sub-vectors",
                remedy="choose `num_sub_vectors` that divides their length",
            )
        named = build_instances(self.place(record.dataset_id, search), rows, wanted.index)
        return replace(search, dimension=dimension, rows=RowVersion(named.version, named.rows))

    def place(self, dataset_id: str, search: SearchIndex) -> str:
        """Returns the location of the dataset that has the rows of an index."""
        return f"{folder_of(self.datasets.root, dataset_id)}/search/{search.index_id}.lance"

    def _gone(self, record: DatasetRecord) -> list[int]:
        """Returns the replaced sources, whose instances are still in the index."""
        live = self.indexes.of(record).source_of_layer
        gone: list[int] = np.setdiff1d(np.arange(record.sources), live).tolist()
        return gone

    @staticmethod
    def _index(record: DatasetRecord, entity: str, component: str, kind: str) -> SearchIndex:
        for each in record.searches:
            if each.column == (entity, component):
                if each.kind == kind:
                    return each
                raise InvalidInput(
                    f"the index of {entity}:{component} is one of {each.kind}s", remedy=f"search for {each.kind}s in it"
                )
        raise NotFound(f"Index '{entity}#{component}' not found", remedy="create a search index of the component first")


def _settings(index: TextIndex | VectorIndex) -> Mapping[str, JSON]:
    """Returns the settings that an index is built with, as the log stores them."""
    match index:
        case TextIndex(tokenizer, with_position):
            return {"tokenizer": tokenizer, "with_position": with_position}
        case VectorIndex(_, sub_vectors, partition_rows):
            return {"sub_vectors": sub_vectors, "partition_rows": partition_rows}


def wanted_again(search: SearchIndex) -> NewSearch:
    """Returns the definition from which an index was built. Raises Corrupt for invalid settings."""
    try:
        match search.kind:
            case "text":
                index: TextIndex | VectorIndex = decode(TextIndex, search.settings)
            case "vector":
                index = decode(VectorIndex, {**search.settings, "metric": search.metric})
    except Mismatch as error:
        raise Corrupt(
            f"the log's entry of a search index is not valid: {error}", where=search.entity, remedy="delete the index"
        ) from None
    return NewSearch(search.entity, search.component, search.timeline, index, search.config)


def _instances(index: DatasetIndex, sources: Sequence[int], search: SearchIndex) -> pa.Table | None:
    found = instances(index, sources, search.entity, search.component, search.timeline, search.kind)
    if found is not None and search.dimension:
        length = int(found.schema.field("instance").type.list_size)
        if length != search.dimension:
            raise InvalidInput(
                f"the vectors of {search.entity}:{search.component} have {length} numbers, and those of the search "
                f"index {search.dimension}",
                remedy="delete the index first, or register the recording in another dataset",
            )
    return found
