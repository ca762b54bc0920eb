"""Queries that are parsed once for the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.views.query.model import FunctionSignature, SourceSchema, ViewQuery
from deployer.views.query.parsing.memory import parse_again


def test_a_query_is_parsed_once_for_the_same_columns() -> None:
    before = SourceSchema("d.t", pa.schema([pa.field("id", pa.int64(), nullable=False)]), ("id",), unique=True)
    described = replace(before, schema=pa.schema([before.schema.field(0).with_metadata({"description": "An id."})]))
    after = replace(before, schema=pa.schema([pa.field("id", pa.string(), nullable=False)]))
    query = "SELECT id AS once FROM d.t"

    def parsed(schema: SourceSchema, functions: Mapping[str, FunctionSignature] | None = None) -> ViewQuery:
        return parse_again(query, lambda _: schema, functions or {}, "view/d.v")

    first = parsed(before)
    assert parsed(before) is first and parsed(replace(before)) is first
    assert parsed(after).schema.field("once").type == pa.string()
    assert parsed(described) is not first
    assert parsed(before) == first and parsed(replace(before, unique=False)).unique_keys is False
    with pytest.raises(InvalidInput, match=r"view/d.v: there is no column 'id'"):
        parsed(replace(before, schema=pa.schema([("other", pa.int64())]), row_keys=()))
    assert parsed(before) == first
