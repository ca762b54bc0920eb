"""Search in datasets of instances: rows with a value in the column `instance`, which a text or vector index finds.

Versions are named by a log, as in `deployer.datasets.files.named_rows`. Rows that came after the index was built are
searched one by one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import as_deployer_error, first_line, is_of_lance
from deployer.datasets.files.named_rows import NamedVersion
from deployer.datasets.storage.options import storage_options
from deployer.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import lance
    import pyarrow as pa

COLUMN = "instance"
TRAINED_FROM = 256  #: least number of vectors for an index; fewer are compared one by one, without loss of accuracy
_KEPT = 16  #: datasets that stay open after they were searched
_PROBED = 20  #: partitions of an index that a search reads
_REFINED = 10  #: candidates for each result, whose distances are computed exactly

Metric = Literal["L2", "cosine", "dot"]


@dataclass(frozen=True, slots=True)
class TextIndex:
    """A full-text index. `with_position` allows phrases."""

    tokenizer: str = "simple"
    with_position: bool = False


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An index of vectors of one length: IVF with product quantization."""

    metric: Metric = "cosine"
    sub_vectors: int = 16
    partition_rows: int = 8192


def build_instances(location: str, rows: pa.Table, index: TextIndex | VectorIndex) -> NamedVersion:
    """Writes rows into a dataset of their own, and builds their index. Raises InvalidInput for settings that do not
    fit."""
    import lance

    try:
        dataset = lance.write_dataset(rows, location, mode="create", storage_options=storage_options(location))
        match index:
            case TextIndex(tokenizer, with_position):
                dataset.create_scalar_index(
                    COLUMN, "INVERTED", with_position=with_position, base_tokenizer=tokenizer, remove_stop_words=False
                )
            case VectorIndex(metric, sub_vectors, partition_rows):
                if rows.num_rows >= TRAINED_FROM:
                    dataset = dataset.create_index(
                        COLUMN,
                        "IVF_PQ",
                        metric=metric,
                        num_partitions=max(1, rows.num_rows // max(1, partition_rows)),
                        num_sub_vectors=sub_vectors,
                    )
        return NamedVersion(int(dataset.latest_version), int(rows.num_rows))
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        raise InvalidInput(
            f"the index cannot be built: {first_line(failure)}", where=location, remedy="change its settings"
        ) from None


def search_texts(location: str, named: NamedVersion, text: str, limit: int | None, without: Sequence[int]) -> pa.Table:
    """Returns rows whose text has a word of `text`, the best first, with `_score`. Rows of `without` sources are left
    out."""
    return _found(location, named, {"full_text_query": text, "limit": limit}, without)


def search_vectors(
    location: str, named: NamedVersion, vector: pa.Array, count: int, metric: Metric, without: Sequence[int]
) -> pa.Table:
    """Returns the rows with the nearest vectors, with `_distance`. Rows of `without` sources are left out."""
    nearest = {"column": COLUMN, "q": vector, "k": count, "metric": metric}
    options = {"nprobes": _PROBED, "refine_factor": _REFINED}
    return _found(location, named, {"nearest": nearest | options}, without)


def _found(location: str, named: NamedVersion, search: dict[str, object], without: Sequence[int]) -> pa.Table:
    dataset = _OPENED.at(location, named.version)
    rows = f"source NOT IN ({', '.join(map(str, without))})" if without else None
    try:
        return dataset.scanner(filter=rows, prefilter=bool(without), **search).to_table()
    except BaseException as failure:
        _OPENED.forget(location)
        if not is_of_lance(failure):
            raise
        raise as_deployer_error(failure, location) from failure


class _DatasetCache:
    """The most recently searched datasets, with the parts of their indexes that Lance keeps in memory. Safe for
    threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, lance.LanceDataset] = OrderedDict()
        self._lock = Lock()

    def at(self, location: str, version: int) -> lance.LanceDataset:
        """Returns the dataset at that version. Raises NotFound."""
        with self._lock:
            kept = self._kept.get(location)
        if kept is not None and kept.version == version:
            return kept
        opened = open_dataset(location, version)
        with self._lock:
            self._kept[location] = opened
            self._kept.move_to_end(location)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return opened

    def forget(self, location: str) -> None:
        with self._lock:
            self._kept.pop(location, None)


_OPENED = _DatasetCache()
