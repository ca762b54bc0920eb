"""A search as a value: the query, and the selection and form of the result rows."""

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
Kind = Literal["vector", "fts", "hybrid", "scan"]  #: the kind of a search; `scan` reads rows without a query
Metric = Literal["l2", "cosine", "dot", "hamming"]
QUERY_TYPES: tuple[QueryType, ...] = get_args(QueryType)
METRICS: tuple[Metric, ...] = get_args(Metric)
LIMIT = 10  #: default number of rows of a search with a query
NPROBES = 20  #: default least number of partitions that a search reads, as in LanceDB


@dataclass(frozen=True, slots=True)
class Ann:
    """The use of an index by a vector search. None leaves a setting to Lance."""

    metric: Metric | None = None
    nprobes: int | None = None  #: exact number of partitions
    refine_factor: int | None = None
    ef: int | None = None
    lower: float | None = None  #: least distance of a result row
    upper: float | None = None  #: distances of result rows are below this value
    use_index: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """A search of one table. `columns` are names and the SQL that gives each; None: all columns."""

    kind: Kind
    text: str | None = None
    vector: Vector | None = None
    vector_column: str = ""
    text_columns: tuple[str, ...] = ()
    ordering: str | None = None  #: the column by which a full-text search orders all rows with the words
    limit: int | None = LIMIT
    offset: int = 0
    condition: Condition | None = None
    prefilter: bool = True  #: whether the condition is applied before the search
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
    """Returns the error for a value that is not one of the allowed ones."""
    return InvalidInput(f"{what} is {value!r}", where=where, remedy=one_of(value, names))
