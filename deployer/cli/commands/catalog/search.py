"""`deployer catalog search`: finds words and vectors of a component in a dataset of recordings, without Rerun's
client."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.catalog.datasets import DatasetName, rows_as_json
from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def search(
    dataset: DatasetName,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="A component column with a search index, such as /log:TextLog:text.")
    ],
    text: Annotated[str | None, typer.Option(help="Words to find.", show_default=False)] = None,
    vector: Annotated[str | None, typer.Option(help="Numbers of a vector, with commas.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="How many instances to show.", min=1)] = 10,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Search the instances of a component, by words or by a vector.

    Clients of rerun.catalog create the index. Each result has its segment, layer, chunk, time, instance and score.
    """
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.reads.index import Indexes
    from deployer.catalog.datasets.search.searches import Searches
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.errors import InvalidInput
    from deployer.state import open_store

    if (text is None) == (vector is None):
        raise InvalidInput("a search is for words or for a vector", remedy="give either --text or --vector")
    entity, found, component = column.partition(":")
    if not found:
        raise InvalidInput(
            f"{column!r} is not a component column", remedy="name it as the schema does: /entity:Component"
        )
    address = root_of(root, project, stack, specs)
    with closing(open_store(address)) as store:
        datasets = Datasets(store, address)
        record, searches = datasets.by_name(dataset), Searches(datasets, Indexes(address))
        if text is not None:
            rows = searches.search_texts(record, entity, component, text, limit)
        else:
            rows = searches.search_vectors(record, entity, component, _numbers(str(vector)), limit)
    if as_json:
        print_json({"results": rows_as_json(rows)})
        return 0
    if not rows.num_rows:
        note("nothing was found")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    columns = ["rerun_segment_id", "rerun_segment_layer", "timepoint", "instance_id", "instance", rows.column_names[-1]]
    for name in columns:
        shown.add_column(name.removeprefix("rerun_").strip("_"))
    for row in rows.select(columns).to_pylist():
        shown.add_row(*map(str, row.values()))
    stdout().print(shown)
    return 0


def _numbers(text: str) -> list[float]:
    from deployer.errors import InvalidInput

    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise InvalidInput(f"{text!r} is not a vector", remedy="give numbers with commas, such as 0.5,1,2") from None
