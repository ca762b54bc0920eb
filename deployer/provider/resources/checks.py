"""What must hold of a table that a Pulumi program declares without specs, whose own checks it has not been through."""

from __future__ import annotations

from collections.abc import Iterator

from deployer.provider.resources.kind import CheckFailure, Properties
from deployer.specs.model import TableSpec
from deployer.specs.types.column_names import listed
from deployer.specs.values.keys import is_key_type
from deployer.state.model.location import RESERVED
from deployer.state.model.names import fault_of_name
from deployer.text.visible import shortened


def check_names(news: Properties) -> Iterator[CheckFailure]:
    """What is wrong with a table's names. They become parts of paths, so they are held to what specs allow."""
    for field in ("database", "name"):
        name = news[field]
        if wrong := fault_of_name(name) if isinstance(name, str) else "is not text":
            yield CheckFailure(field, f"{shortened(name)} {wrong}")
        elif field == "database" and name.lower() in RESERVED:
            yield CheckFailure(field, f"{name!r} is a folder of deployer's own in the root; use another name")


def check_table(spec: TableSpec) -> Iterator[CheckFailure]:
    """Everything that is wrong with `spec`, its names aside."""
    columns = {column.name: column for column in spec.columns}
    if len(columns) != len(spec.columns):
        yield CheckFailure("columns", "two columns have the same name; rename one of them")
    for field, keys in (("row_keys", spec.row_keys), ("sort_keys", spec.sort_keys)):
        for key in keys:
            column = columns.get(key)
            if column is None:
                yield CheckFailure(field, f"no column {key!r}; name one of {listed(columns)}")
            elif not is_key_type(column.type):
                yield CheckFailure(field, f"column {key!r} has no order; use numbers, text, binary, dates or times")
            elif field == "row_keys" and column.nullable:
                yield CheckFailure(field, f"row key {key!r} may be null; declare the column as not nullable")
    if spec.unique and not spec.row_keys:
        yield CheckFailure("unique", "unique row keys need row keys")
    if spec.split_points and not spec.row_keys:
        yield CheckFailure("partitions", "split points need row keys")
