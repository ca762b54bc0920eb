"""Checks of a table that does not come from the project's specs: it may have only what specs can declare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployer.platform.sql.select import NotOneSelect, check_select
from deployer.platform.text.visible import shortened
from deployer.provider.resources.kind import CheckFailure, Properties
from deployer.specs.editing.write import table_document
from deployer.specs.loading.tables import problems_of_table
from deployer.specs.model import TableSpec
from deployer.state.model.names import fault_of_name


def check_names(news: Properties) -> Iterator[CheckFailure]:
    """Yields the faults of a table's names. Inputs with such faults are not a table, because names become parts of
    paths."""
    for field in ("database", "name"):
        name = news[field]
        if wrong := fault_of_name(name) if isinstance(name, str) else "is not text":
            yield CheckFailure(field, f"{shortened(name)} {wrong}")


def check_table(spec: TableSpec) -> Iterator[CheckFailure]:
    """Yields the faults that the rules of specs find in `spec`."""
    if spec.view is not None:
        try:
            check_select(spec.view.query)
        except NotOneSelect as wrong:
            yield CheckFailure("view", f"the query is not one SELECT: {wrong}; write one SELECT")
        spec = replace(spec, view=None)  # it already has the columns of the schemas, as a table has them
    for problem in problems_of_table(table_document(spec)):
        yield CheckFailure(problem.at.file, f"{problem.what}; {problem.remedy}")
