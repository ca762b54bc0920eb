"""A search as a value: what is searched, and how the rows that are found are chosen and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from deployer.errors import InvalidInput
from deployer.search.rerank import Normalize, Reranker, RRFReranker
from deployer.search.vectors import Vector
from deployer.specs.yaml.suggestions import one_of
from deployer.tables.read.scan_plan import Condition

QueryType = Literal["vector", "fts", "hybrid", "auto"]
Kind = Literal["vector", "fts", "hybrid", "scan"]  #: of a search; `scan` reads rows without a query
Metric = Literal["l2", "cosine", "dot", "hamming"]
QUERY_TYPES: tuple[QueryType, ...] = get_args(QueryType)
METRICS: tuple[Metric, ...] = get_args(Metric)
LIMIT = 10  #: rows of a search with a query, unless it says otherwise
NPROBES = 20  #: partitions that a search reads at least, unless it says otherwise; as LanceDB


@dataclass(frozen=True, slots=True)
class Ann:
    """The use of an index by a vector search. None leaves a setting to Lance."""

    metric: Metric | None = None
    nprobes: int | None = None  #: exactly so many partitions
    refine_factor: int | None = None
    ef: int | None = None
    lower: float | None = None  #: the lowest distance of a row that is found
    upper: float | None = None  #: distances of rows that are found are below it
    use_index: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """A search of one table. `columns` are names and the SQL that gives each; None: all columns."""

    kind: Kind
    text: str | None = None
    vector: Vector | None = None
    vector_column: str = ""
    text_columns: tuple[str, ...] = ()
    ordering: str | None = None  #: the column that a full-text search orders all rows with the words by
    limit: int | None = LIMIT
    offset: int = 0
    condition: Condition | None = None
    prefilter: bool = True  #: whether the condition comes before the search
    columns: Mapping[str, str] | None = None
    row_id: bool = False
    ann: Ann = Ann()
    indexed_only: bool = False
    reranker: Reranker | None = None
    normalize: Normalize = "score"
    rerank_query: str | None = None

    @property
    def hybrid_reranker(self) -> Reranker:
        return self.reranker if self.reranker is not None else RRFReranker()


def unknown_choice(what: str, value: object, names: tuple[str, ...], where: str) -> InvalidInput:
    """Returns the error for a value that is not one of those that there are."""
    return InvalidInput(f"{what} is {value!r}", where=where, remedy=one_of(value, names))
