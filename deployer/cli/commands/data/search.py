"""`deployer search`: finds the rows of a table by words, or by the distance to a vector."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.commands.data.query import Columns, Output, RowFormat, RowFormatOption, SafeCsv, write_rows
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from deployer.platform.isolation.trusted_functions import TrustedFunctions


class SearchType(StrEnum):
    """The kind of search for a query."""

    AUTO = "auto"
    VECTOR = "vector"
    FTS = "fts"
    HYBRID = "hybrid"


def search(
    table: TableName,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[WORDS]", help="The words to search; in double quotes a phrase.", show_default=False),
    ] = None,
    vector: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Search the vector in this file: .npy, a JSON list, or numbers; with words too, both (hybrid).",
            show_default=False,
        ),
    ] = None,
    search_type: Annotated[
        SearchType,
        typer.Option(
            "--type",
            help="auto: words by the table's embedding function where it declares one, else by full-text indexes.",
        ),
    ] = SearchType.AUTO,
    where: Annotated[
        str | None, typer.Option(help="Only rows for which this SQL condition is true.", show_default=False)
    ] = None,
    columns: Columns = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Show at most this many rows.")] = 10,
    vector_column: Annotated[
        str | None, typer.Option(help="The column of vectors to search, if the table has several.", show_default=False)
    ] = None,
    text_columns: Annotated[
        str | None,
        typer.Option(
            help="Columns whose words are searched, separated by commas. All with a full-text index by default.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="l2, cosine, dot or hamming. By default, the metric of the index.", show_default=False),
    ] = None,
    nprobes: Annotated[
        int | None, typer.Option(help="Partitions of a vector index to read. 20 by default.", show_default=False)
    ] = None,
    refine_factor: Annotated[
        int | None,
        typer.Option(help="Read this many times as many rows, and order them by exact distance.", show_default=False),
    ] = None,
    trust_function: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PACKAGE.MODULE:FUNCTION",
            help="Run this function where the table names it as its embedding function; repeatable. It is found beside "
            "Pulumi.yaml too.",
            show_default=False,
        ),
    ] = None,
    format: RowFormatOption = RowFormat.TABLE,
    output: Output = None,
    safe_csv: SafeCsv = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Find the rows of a table with words, or nearest to a vector; the best first."""
    from deployer.cli.commands.data.rows import rows_as_json
    from deployer.cli.console.activity import show_activity
    from deployer.cli.console.output import note, print_json
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.errors import InvalidInput
    from deployer.platform.isolation.trusted_functions import TrustedFunctions
    from deployer.search import SearchTarget
    from deployer.search import search as search_table
    from deployer.search.vector_files import read_vector_file
    from deployer.specs.types.column_names import split_names
    from deployer.tables.read.table import Rows, open_table

    if text is None and vector is None:
        raise InvalidInput("there is nothing to search", remedy="give words, or a vector with --vector FILE")
    show_activity(f"searching {table}", as_json=as_json)
    trusted = TrustedFunctions.allowed(trust_function or ())
    _find_beside_project(trusted, project, stack, specs)
    target = SearchTarget.of(open_table(root_to_read(project, stack, specs), table).opened, trusted)
    of_text = split_names(text_columns, "--text-columns") if text_columns is not None else None
    numbers = read_vector_file(vector) if vector is not None else None
    if text is not None and numbers is not None:
        if search_type not in (SearchType.AUTO, SearchType.HYBRID):
            raise InvalidInput(
                f"--type {search_type} takes words or a vector, and both are given",
                remedy="leave one out, or search both with --type hybrid",
            )
        builder = search_table(target, None, vector_column, "hybrid", None, of_text).vector(numbers).text(text)
    else:
        query = text if text is not None else numbers
        builder = search_table(target, query, vector_column, search_type.value, None, of_text)
    builder.limit(limit)
    if where is not None:
        builder.where(where)
    if columns is not None:
        builder.select(split_names(columns, "--columns"))
    if metric is not None:
        builder.metric(metric)
    if nprobes is not None:
        builder.nprobes(nprobes)
    if refine_factor is not None:
        builder.refine_factor(refine_factor)
    found = builder.to_arrow()
    if as_json:
        print_json({"rows": rows_as_json(iter(found.to_batches())), "type": builder.query_type})
        return 0
    write_rows(Rows(found.schema, iter(found.to_batches()), 0, 0), format, output, as_json=False, safe_csv=safe_csv)
    if not found.num_rows:
        note("no row was found")
    return 0


def _find_beside_project(trusted: TrustedFunctions, project: Path | None, stack: str, specs: Path | None) -> None:
    """Makes modules in the project's folder importable where functions are trusted; installed modules come first."""
    import sys

    from deployer.app.workspace import open_workspace

    if trusted.names:
        sys.path.append(str(open_workspace(project, stack, specs).dir))
