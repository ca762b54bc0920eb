"""Runs searches: the requests to Lance, and the conversion of its results to one table."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa

from deployer.datasets.errors import first_line, is_of_files, is_of_lance, refused_by_storage
from deployer.datasets.indexes.text_queries import descending, phrase_query, words_query
from deployer.errors import Conflict, DeployerError, InvalidInput
from deployer.search.request import NPROBES, Request
from deployer.search.rerank import (
    DISTANCE,
    RELEVANCE,
    ROW_ID,
    SCORE,
    HybridReranker,
    TextReranker,
    VectorReranker,
    checked,
    fused,
)
from deployer.search.target import SearchTarget
from deployer.search.texts import phrase_of
from deployer.tables.read.conditions import read_failure


def run(request: Request, target: SearchTarget) -> pa.Table:
    """Returns the rows that the search finds, the best first. Raises InvalidInput for SQL that Lance cannot use."""
    match request.kind:
        case "hybrid":
            found = _hybrid(request, target)
        case "scan":
            return _read(request, target)
        case _ if request.reranker is None:
            return _read(request, target)
        case _:
            found = _reranked(request, target)
    found = found.slice(request.offset, request.limit)
    return found if request.row_id or ROW_ID not in found.column_names else found.drop_columns([ROW_ID])


def batches(request: Request, target: SearchTarget, batch_size: int | None) -> pa.RecordBatchReader:
    """Returns the same rows, in batches of at most `batch_size`; without a query, in the order in which they are
    read."""
    if request.kind != "scan":
        found = run(request, target)
        return pa.RecordBatchReader.from_batches(found.schema, iter(found.to_batches(batch_size)))
    with _failures(request, target):
        reader = _scanner(request, target, batch_size).to_reader()

    def read() -> Iterator[pa.RecordBatch]:
        with _failures(request, target):
            yield from reader

    return pa.RecordBatchReader.from_batches(reader.schema, read())


def plan(request: Request, target: SearchTarget, *, verbose: bool) -> str:
    """Returns how Lance would run the search, as text; for a hybrid search, both parts."""
    parts = {"Vector search": _near(request), "Full-text search": _with_words(request)}
    if request.kind != "hybrid":
        parts = {"": request}
    with _failures(request, target):
        plans = {name: str(_scanner(part, target).explain_plan(verbose)) for name, part in parts.items()}
    return "\n\n".join(f"{name}:\n{text}" if name else text for name, text in plans.items())


def _near(request: Request) -> Request:
    """Returns the vector part of a hybrid search."""
    return replace(_part(request), kind="vector")


def _with_words(request: Request) -> Request:
    """Returns the full-text part of a hybrid search."""
    return replace(_part(request), kind="fts")


def _part(request: Request) -> Request:
    """Returns all candidate rows of the result, with their ids."""
    return replace(request, limit=(request.limit or 0) + request.offset, offset=0, row_id=True)


def _hybrid(request: Request, target: SearchTarget) -> pa.Table:
    with ThreadPoolExecutor(1) as other:
        reading = other.submit(_read, _with_words(request), target)
        near = _read(_near(request), target)
        with_words = reading.result()
    reranker = cast(HybridReranker, request.hybrid_reranker)
    return fused(reranker, request.text or "", near, with_words, request.normalize, target.address)


def _reranked(request: Request, target: SearchTarget) -> pa.Table:
    found, query = _read(_part(request), target), request.rerank_query or request.text or ""
    if request.kind == "vector":
        result = cast(VectorReranker, request.reranker).rerank_vector(query, found)
    else:
        result = cast(TextReranker, request.reranker).rerank_fts(query, found)
    return checked(result, request.reranker, target.address)


def _read(request: Request, target: SearchTarget) -> pa.Table:
    with _failures(request, target):
        scanner = _scanner(request, target)
        if request.ordering is None:
            return scanner.to_table()
        return _first(scanner.to_reader(), (request.limit or 0) + request.offset).slice(request.offset)


def _first(reader: pa.RecordBatchReader, count: int) -> pa.Table:
    """Returns the first rows; the rest is not read. With a limit, Lance would order only the rows with the best
    score."""
    found, rows = [], 0
    for batch in reader:
        found.append(batch.slice(0, count - rows))
        rows += found[-1].num_rows
        if rows >= count:
            break
    return pa.Table.from_batches(found, reader.schema)


def _scanner(request: Request, target: SearchTarget, batch_size: int | None = None) -> Any:
    """Returns Lance's scanner for a search that is not hybrid."""
    options: dict[str, Any] = {
        "columns": _projection(request, target),
        "disable_scoring_autoprojection": True,
        "with_row_id": request.row_id,
        "blob_handling": "all_binary",
        "batch_size": batch_size,
    }
    if request.condition is not None:
        options |= {"filter": request.condition.sql, "prefilter": request.prefilter}
    if request.ordering is None:
        options |= {"limit": request.limit, "offset": request.offset or None}
    if request.kind != "scan":
        options["fast_search"] = request.indexed_only
    if request.kind == "vector":
        options["nearest"] = _nearest(request, target)
    if request.kind == "fts":
        options |= _full_text(request)
    return target.dataset.scanner(**options, **_counted(request, target))


def _projection(request: Request, target: SearchTarget) -> list[str] | dict[str, str]:
    own = {"vector": [DISTANCE], "fts": [SCORE]}.get(request.kind, [])
    if request.columns is None:
        return [*target.schema.names, *own]
    chosen = {name: sql for name, sql in request.columns.items() if name not in (DISTANCE, SCORE, RELEVANCE, ROW_ID)}
    if all(name == sql for name, sql in chosen.items()):
        return [*chosen, *own]
    return {**chosen, **{name: name for name in own}}


def _nearest(request: Request, target: SearchTarget) -> dict[str, Any]:
    ann, column = request.ann, request.vector_column
    rows = max(target.rows, 1)
    wanted = min(
        (request.limit or 0) + request.offset, rows
    )  # Lance reserves memory for this many, and crashes for too many
    metric = ann.metric or target.metric_of(column) or ("hamming" if target.vector_item(column) == "uint8" else "l2")
    nearest: dict[str, Any] = {
        "column": column,
        "q": request.vector,
        "k": wanted,
        "metric": metric,
        "use_index": ann.use_index,
        "minimum_nprobes": min(ann.nprobes or NPROBES, rows),
    }
    if ann.nprobes is not None:
        nearest["maximum_nprobes"] = min(ann.nprobes, rows)
    if ann.refine_factor is not None:
        nearest["refine_factor"] = min(ann.refine_factor, -(-rows // wanted))
    if ann.ef is not None:
        nearest["ef"] = min(ann.ef, rows)
    if ann.lower is not None or ann.upper is not None:
        nearest["distance_range"] = (ann.lower, ann.upper)
    return nearest


def _full_text(request: Request) -> dict[str, Any]:
    text, columns = request.text or "", request.text_columns
    phrase = phrase_of(text)
    query = words_query(text, columns) if phrase is None else phrase_query(phrase, columns)
    options: dict[str, Any] = {"full_text_query": query}
    if request.ordering is not None:
        options["order_by"] = [descending(request.ordering)]
    return options


def _counted(request: Request, target: SearchTarget) -> dict[str, Any]:
    """Returns the fragments whose rows count, if some rows do not count."""
    without = target.table.without
    if not without:
        return {}
    if request.kind != "scan" and request.condition is not None and not request.prefilter:
        raise Conflict(
            "a load is being rolled back; until that is done, a condition cannot come after the search",
            where=target.address,
            remedy="search with prefilter=True, or try again in a moment",
        )
    counted = [each for each in target.dataset.get_fragments() if each.fragment_id not in without]
    return {"fragments": counted, "prefilter": True}


@contextmanager
def _failures(request: Request, target: SearchTarget) -> Iterator[None]:
    """Raises Lance's failures as readable errors."""
    try:
        yield
    except DeployerError:
        raise
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        if refused := _sql_failure(failure, request, target):
            raise refused from failure
        written = request.condition.written if request.condition is not None else None
        searched = (request.vector_column, *request.text_columns)
        location = target.table.location
        raise read_failure(failure, written, target.dataset, location, target.address, None, searched) from failure


def _sql_failure(failure: BaseException, request: Request, target: SearchTarget) -> InvalidInput | None:
    """Returns the error for a failure that the SQL of a column most likely caused; None where no column has SQL."""
    expressions = [sql for name, sql in (request.columns or {}).items() if name != sql]
    of_storage = refused_by_storage(failure, target.table.location) is not None or is_of_files(failure)
    if not expressions or of_storage:
        return None
    return InvalidInput(
        f"the SQL of the columns cannot be used: {first_line(failure)}",
        where=target.address,
        remedy=f"correct {' or '.join(expressions)}"
        + (f", or the condition {request.condition.written}" if request.condition is not None else ""),
    )
