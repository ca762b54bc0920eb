"""Checks users' SQL conditions, and explains why Lance cannot use a condition."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.errors import as_deployer_error, first_line, is_of_files, is_of_lance, refused_by_storage
from deployer.datasets.indexes.damage import damaged_index
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.sql.messages import in_plain_words
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.parsing import check_expression
from deployer.specs.types.column_names import alike
from deployer.tables.read.key_values import unknown_column

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

_REMEDY = (
    "write an SQL condition such as \"carrier = 'AA' AND distance > 1000\"; a name with other than letters, digits "
    "and _ stands in backticks, as in `Total Amount` > 3"
)
_WORD = re.compile(r"'(?:[^']|'')*'|`[^`]*`|(?P<name>\"(?:[^\"]|\"\")*\")|\w+", re.DOTALL)
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_condition(where: str, address: str, schema: pa.Schema) -> None:
    """Raises InvalidInput where the text is not a single expression, because only this can be combined with other
    conditions.

    Also raises InvalidInput for a column's name in double quotes, which Lance reads as text, like single quotes.
    """
    try:
        check_expression(where)
    except NotOneExpression as wrong:
        raise InvalidInput(
            f"the condition {_short(where)} is not one SQL expression: it has {wrong}",
            where=address,
            remedy=_quotes_needed(where, schema) or _REMEDY,
        ) from None
    if '"' not in where:
        return
    names = {alike(name): name for name in _names(schema)}
    for found in _WORD.finditer(where):
        text = found["name"][1:-1].replace('""', '"') if found["name"] else ""
        if name := names.get(alike(text), ""):
            text = text.replace("'", "''")
            raise InvalidInput(
                f"the condition {_short(where)} has the column {name} in double quotes, which Lance takes for text",
                where=address,
                remedy=f"write `{name}` in backticks for the column, or '{text}' for the text",
            )


@contextmanager
def read_errors(
    location: str, address: str, dataset: LanceDataset, where: str | None = None, sql: str | None = None
) -> Iterator[None]:
    """Converts Lance's errors of a read within the block with `read_failure`; other errors are unchanged."""
    try:
        yield
    except DeployerError:
        raise
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        raise read_failure(failure, where, dataset, location, address, sql) from failure


def read_failure(
    failure: BaseException,
    where: str | None,
    dataset: LanceDataset,
    location: str,
    address: str,
    sql: str | None = None,
    columns: Collection[str] = (),
) -> DeployerError:
    """Returns the error for Lance's failure of a read of the dataset at `location`, with the condition `where`, if any.

    `sql` is the condition that Lance got, if it is not the user's. `columns` are the columns that were searched, whose
    indexes may be damaged.
    """
    if damaged := damaged_index(dataset, failure, sql or where or "", columns, address):
        return damaged
    if where is None or refused_by_storage(failure, location) is not None or is_of_files(failure):
        return as_deployer_error(failure, location)
    return filter_failure(failure, where, dataset.schema, address)


def filter_failure(failure: BaseException, where: str, schema: pa.Schema, address: str) -> DeployerError:
    """Returns the error for Lance's message about a condition, without Lance's source positions."""
    text = str(failure)
    if missing := re.search(r"[Nn]o field named [\"`']?([^\"`'.]+)[\"`']?|Column ([^,]+?) does not exist", text):
        found = unknown_column(missing[1] or missing[2], schema.names, address)
        quotes = _quotes_needed(where, schema)
        return InvalidInput(found.what, where=address, remedy=quotes) if quotes else found
    message = first_line(failure).strip(" .")
    if parsed := re.search(r"sql parser error: (.*?)\)?$", message):
        message = parsed[1]
    elif value := re.search(r"Error optimizing sql filter: .*\((?:Parser|Cast) error: (.*)\)$", message):
        message = value[1]  # without the condition, which has another form by now
    else:
        message = in_plain_words(text)
        message = first_line(failure).strip(" .") if message == text else message
    remedy = _quotes_needed(where, schema) or _REMEDY
    return InvalidInput(f"the condition {_short(where)} cannot be used: {message}", where=address, remedy=remedy)


def _quotes_needed(where: str, schema: pa.Schema) -> str:
    """Returns the remedy for a column's name that needs quotes and has none; empty where no name needs them."""
    bare = _WORD.sub(lambda found: found[0] if found[0][0] not in "'`\"" else "''", where).lower()
    names = [name for name in _names(schema) if not _BARE.fullmatch(name) and name.lower() in bare and name.strip()]
    return f"write the column in backticks: `{max(names, key=len)}`" if names else ""


def _names(schema: pa.Schema) -> Iterator[str]:
    """Yields the names of columns and of fields of structs."""
    pending = [*schema]
    while pending:
        field = pending.pop()
        yield field.name
        if pa.types.is_struct(field.type):
            pending += [field.type.field(i) for i in range(field.type.num_fields)]


def _short(where: str) -> str:
    return repr(where if len(where) <= 200 else where[:199] + "…")
