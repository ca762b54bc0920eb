"""The query builder: its methods add settings to a search, which then returns rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.parsing import check_expression
from deployer.search.embedding import embedded
from deployer.search.execution import batches, plan, run
from deployer.search.request import METRICS, Kind, Request, unknown_choice
from deployer.search.rerank import (
    DISTANCE,
    RELEVANCE,
    ROW_ID,
    SCORE,
    HybridReranker,
    Normalize,
    Reranker,
    RRFReranker,
    TextReranker,
    VectorReranker,
)
from deployer.search.target import SearchTarget
from deployer.search.texts import read_text, require_positions
from deployer.search.vectors import fitted, read_vector
from deployer.tables.read.conditions import check_condition
from deployer.tables.read.key_values import unknown_column
from deployer.tables.read.scan_plan import Condition

if TYPE_CHECKING:
    import pandas as pd

_RERANKERS: Mapping[Kind, tuple[type, str]] = {
    "vector": (VectorReranker, "rerank_vector"),
    "fts": (TextReranker, "rerank_fts"),
    "hybrid": (HybridReranker, "rerank_hybrid"),
}
_RRF = RRFReranker()
_OF_RESULTS = (DISTANCE, SCORE, RELEVANCE, ROW_ID)
_VECTOR: tuple[Kind, ...] = ("vector", "hybrid")


class SearchBuilder:
    """A search of one version of a table. Each method changes the search and returns it; each call of `to_…` runs it.

    A method raises InvalidInput immediately for an invalid value, or a setting that a search of this kind does not
    have.
    """

    def __init__(self, target: SearchTarget, request: Request, vector_column: str | None = None) -> None:
        self._target = target
        self._request = request
        self._named_column = vector_column

    @property
    def query_type(self) -> Kind:
        """`vector`, `fts` or `hybrid`; `scan` without a query."""
        return self._request.kind

    def limit(self, limit: int | None) -> Self:
        """Sets the largest number of rows, 10 by default. None, for all rows, needs a search without a query."""
        if limit is None and self._request.kind == "scan":
            return self._with(limit=None)
        return self._with(limit=self._whole("limit", limit))

    def offset(self, offset: int) -> Self:
        """Leaves out this many of the best rows."""
        return self._with(offset=self._whole("offset", offset, least=0))

    def where(self, where: str, prefilter: bool = True) -> Self:
        """Keeps only rows for which the SQL condition is true; another call adds another condition.

        The condition is applied before the search, so that `limit` matching rows are found; with `prefilter=False` it
        is applied after the search, and leaves fewer rows.
        """
        if not isinstance(where, str):
            raise InvalidInput(
                f"the condition is of type {type(where).__name__}", where=self._address, remedy="give an SQL string"
            )
        check_condition(where, self._address, self._target.table.schema)
        added, before = Condition.typed(where, self._target.schema), self._request.condition
        if before is not None:
            added = Condition(f"({before.written}) AND ({where})", f"({before.sql}) AND ({added.sql})")
        return self._with(condition=added, prefilter=prefilter)

    def select(self, columns: Sequence[str] | Mapping[str, str]) -> Self:
        """Selects these columns only, or new ones by name with the SQL of each: `{"km": "miles * 1.609"}`.

        The distance or score is always included.
        """
        is_list = isinstance(columns, Sequence | Mapping) and all(isinstance(name, str) for name in columns)
        if isinstance(columns, str) or not is_list:
            raise InvalidInput(
                f"the columns are {columns!r}", where=self._address, remedy="give a list of names, or a dict of SQL"
            )
        names = columns if isinstance(columns, Mapping) else dict.fromkeys(columns)
        if not names:
            raise InvalidInput("no column is selected", where=self._address, remedy="give at least one name")
        chosen = {name: self._expression(name, sql) for name, sql in names.items()}
        return self._with(columns=chosen, row_id=self._request.row_id or ROW_ID in chosen)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Adds Lance's `_rowid` to the rows, or leaves it out."""
        return self._with(row_id=with_row_id)

    def distance_type(self, distance_type: str) -> Self:
        """Sets the metric: `l2`, `cosine` or `dot`, or `hamming` for vectors of uint8. The default is the metric of the
        column's index, or l2 without an index. An index of another metric is not used."""
        metric = distance_type.lower() if isinstance(distance_type, str) else distance_type
        if metric not in METRICS:
            raise unknown_choice("the metric", distance_type, METRICS, self._address)
        column = self._column()
        of_bits = self._target.vector_item(column) == "uint8"
        if of_bits != (metric == "hamming"):
            raise InvalidInput(
                f"the metric {metric} does not fit column {column!r} with vectors of "
                f"{self._target.vector_item(column)}",
                where=self._address,
                remedy="use hamming" if of_bits else "use one of l2, cosine, dot",
            )
        return self._ann("distance_type", metric=metric)

    metric = distance_type

    def distance_range(self, lower_bound: float | None = None, upper_bound: float | None = None) -> Self:
        """Keeps only rows with a distance of at least `lower_bound` and below `upper_bound`."""
        for name, bound in (("lower_bound", lower_bound), ("upper_bound", upper_bound)):
            number = isinstance(bound, int | float) and not isinstance(bound, bool) and not math.isnan(bound)
            if bound is not None and not number:
                raise InvalidInput(f"{name} is {bound!r}", where=self._address, remedy="give a number")
        if lower_bound is not None and upper_bound is not None and lower_bound >= upper_bound:
            raise InvalidInput(
                f"no distance is at least {lower_bound} and below {upper_bound}",
                where=self._address,
                remedy="give a lower_bound that is below the upper_bound",
            )
        return self._ann("distance_range", lower=lower_bound, upper=upper_bound)

    def nprobes(self, nprobes: int) -> Self:
        """Sets how many partitions of an index are read: more find more of the nearest rows, and take longer.

        By default, 20, and more where a condition leaves too few rows.
        """
        return self._ann("nprobes", nprobes=self._whole("nprobes", nprobes))

    def refine_factor(self, refine_factor: int) -> Self:
        """Reads this many times as many rows, and orders them by their exact distances."""
        return self._ann("refine_factor", refine_factor=self._whole("refine_factor", refine_factor))

    def ef(self, ef: int) -> Self:
        """Sets how many candidates a search of a graph (hnsw) keeps: at least the number of result rows; 1.5 times this
        number by default."""
        return self._ann("ef", ef=self._whole("ef", ef))

    def bypass_vector_index(self) -> Self:
        """Compares all vectors: exact, and slow for many rows."""
        return self._ann("bypass_vector_index", use_index=False)

    def fast_search(self) -> Self:
        """Leaves out rows that are not indexed yet."""
        self._require("fast_search", ("vector", "fts", "hybrid"))
        return self._with(indexed_only=True)

    def vector(self, vector: Any) -> Self:
        """Sets the vector of a hybrid search that already has a text."""
        self._require("vector", ("hybrid",))
        values = read_vector(vector, self._address)
        column = self._target.vector_column(self._named_column, len(values))
        return self._with(vector=fitted(values, column, self._target), vector_column=column)

    def text(self, text: str) -> Self:
        """Sets the text of a hybrid search that already has a vector."""
        self._require("text", ("hybrid",))
        words = read_text(text, self._address)
        require_positions(words, self._request.text_columns, self._target)
        return self._with(text=words)

    def rerank(
        self, reranker: Reranker = _RRF, normalize: Normalize = "score", query_string: str | None = None
    ) -> Self:
        """Orders the rows by a reranker; `normalize` is how a hybrid search makes distances and scores comparable.

        `query_string` is the query for the reranker: by default the text of the search.
        """
        if self._request.kind not in _RERANKERS:
            raise InvalidInput("a reading without a query has no order to change", where=self._address)
        kind, method = _RERANKERS[self._request.kind]
        if not isinstance(reranker, kind):
            raise InvalidInput(
                f"{type(reranker).__name__} cannot rerank a {self._request.kind} search",
                where=self._address,
                remedy=f"give an object with the method {method}",
            )
        if normalize not in ("score", "rank"):
            raise unknown_choice("normalize", normalize, ("score", "rank"), self._address)
        text = query_string if query_string is not None else self._request.text
        if self._request.kind == "vector" and text is None:
            raise InvalidInput(
                "the reranker needs the words of the query, and a vector was searched",
                where=self._address,
                remedy="give them as `query_string`",
            )
        return self._with(reranker=reranker, normalize=normalize, rerank_query=text)

    def to_arrow(self) -> pa.Table:
        """Returns the rows, the best first, with `_distance`, `_score` or `_relevance_score`."""
        return run(self._complete(), self._target)

    def to_batches(self, batch_size: int | None = None) -> pa.RecordBatchReader:
        """Returns the rows in batches; without a query, in the order in which they are read."""
        size = None if batch_size is None else self._whole("batch_size", batch_size)
        return batches(self._complete(), self._target, size)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the rows as a DataFrame of pandas."""
        rows: pd.DataFrame = self.to_arrow().to_pandas()
        return rows

    def to_list(self) -> list[dict[str, Any]]:
        """Returns the rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def explain_plan(self, verbose: bool = False) -> str:
        """Returns how Lance would run the search."""
        return plan(self._complete(), self._target, verbose=verbose)

    @property
    def _address(self) -> str:
        return self._target.address

    def _complete(self) -> Request:
        """Returns the complete search. Raises InvalidInput for a hybrid search without a text or vector."""
        request = self._request
        if request.kind != "hybrid":
            return request
        if request.text is None:
            raise InvalidInput(
                "the hybrid search has no text", where=self._address, remedy='give one: .text("words to search")'
            )
        if request.vector is None:
            column = self._column()
            return replace(request, vector=embedded(request.text, column, self._target), vector_column=column)
        return request

    def _column(self) -> str:
        return self._request.vector_column or self._target.vector_column(self._named_column)

    def _expression(self, name: Any, sql: Any) -> str:
        if isinstance(name, str) and sql is None:
            if self._request.kind == "scan" and name in _OF_RESULTS[:3]:
                raise unknown_column(name, self._target.schema.names, self._address)
            if name not in self._target.schema.names and name not in _OF_RESULTS:
                raise unknown_column(name, self._target.schema.names, self._address)
            return name
        if not isinstance(name, str) or not isinstance(sql, str):
            raise InvalidInput(
                f"the column {name!r} is given as {sql!r}", where=self._address, remedy="give an SQL string for a name"
            )
        try:
            check_expression(sql)
        except NotOneExpression as wrong:
            raise InvalidInput(
                f"the SQL of column {name!r} is not one expression: it has {wrong}",
                where=self._address,
                remedy='write an SQL expression such as "miles * 1.609"',
            ) from None
        return sql

    def _require(self, method: str, kinds: tuple[Kind, ...]) -> None:
        if self._request.kind not in kinds:
            raise InvalidInput(
                f"{method} is for a search of kind {' or '.join(kinds)}, and this one is {self._request.kind}",
                where=self._address,
                remedy=f'leave it out, or search with query_type="{kinds[-1]}"',
            )

    def _whole(self, name: str, value: Any, least: int = 1) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
            raise InvalidInput(
                f"{name} is {value!r}", where=self._address, remedy=f"give a whole number that is at least {least}"
            )
        return value

    def _with(self, **changes: Any) -> Self:
        self._request = replace(self._request, **changes)
        return self

    def _ann(self, method: str, **changes: Any) -> Self:
        self._require(method, _VECTOR)
        return self._with(ann=replace(self._request.ann, **changes))
