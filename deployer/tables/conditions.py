"""Conditions that people write in SQL: whether one is a single expression, and why Lance cannot use one."""

from __future__ import annotations

import re

import pyarrow as pa

from deployer.errors import DeployerError, InvalidInput
from deployer.live.lance_failures import first_line
from deployer.sql.one_expression import NotOneExpression, check_one_expression
from deployer.tables.key_values import unknown_column
from deployer.tables.where_ranges import parse_condition

_REMEDY = "write an SQL condition such as \"carrier = 'AA' AND distance > 1000\"; quote odd names with backticks"


def check_condition(where: str, address: str) -> None:
    """Raises InvalidInput when the text is not one expression, which alone may be combined with other conditions."""
    try:
        check_one_expression(where)
    except NotOneExpression as wrong:
        raise InvalidInput(
            f"the condition {_short(where)} is not one SQL expression: it has {wrong}", where=address, remedy=_REMEDY
        ) from None


def filter_failure(failure: BaseException, where: str, schema: pa.Schema, address: str) -> DeployerError:
    """The error for what Lance says of a condition, without Lance's source positions."""
    text = str(failure)
    if missing := re.search(r"[Nn]o field named [\"`']?([^\"`'.]+)[\"`']?|Column ([^\s,]+) does not exist", text):
        return unknown_column(missing[1] or missing[2], schema.names, address)
    said = first_line(failure).strip(" .")
    if parsed := re.search(r"sql parser error: (.*?)\)?$", said):
        said = _place_of(where, schema) or parsed[1]
    return InvalidInput(f"the condition {_short(where)} cannot be used: {said}", where=address, remedy=_REMEDY)


def _place_of(where: str, schema: pa.Schema) -> str:
    """What DataFusion's parser finds wrong, and where in the text, which Lance does not say; else an empty string."""
    try:
        parse_condition(where, schema)
    except Exception as failure:  # of what kind DataFusion does not say
        found = re.search(r"Expected: (.*?), found: (.*?) at Line: (\d+), Column: (\d+)", str(failure))
        if found:
            line = "" if found[3] == "1" else f" of line {found[3]}"
            return f"`{found[2]}` at character {found[4]}{line} stands where {found[1]} is expected"
    return ""


def _short(where: str) -> str:
    return repr(where if len(where) <= 200 else where[:199] + "…")
