"""`deployer catalog register`: registers recordings as layers of a dataset, without Rerun's client."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.catalog.datasets import DatasetName
from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, EngineName, ProjectDir, SpecsPath, StackName


def register(
    dataset: DatasetName,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE…]",
            help="Recordings, or folders and prefixes of them (`--prefix`). Without any: what is new below the sources "
            "that the dataset's spec declares.",
        ),
    ] = None,
    layer: Annotated[str, typer.Option(help="Layer of the segments that the recordings become.")] = "base",
    prefix: Annotated[bool, typer.Option("--prefix", help="Register all .rrd files below each FILE.")] = False,
    create: Annotated[bool, typer.Option("--create", help="Create the dataset where there is none.")] = False,
    engine: Annotated[
        EngineName, typer.Option(help="auto: fewer than 50,000 files in this process, more with Spark.")
    ] = EngineName.AUTO,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Register recordings (.rrd) with a dataset. They stay where they are.

    Their footers are read; a file without one is read whole. Good files are registered by one commit. A file that
    cannot be is named with the reason, and the exit code is 1. A layer that a segment has already is an error, and
    nothing is registered then; below declared sources, such a file is passed over.
    """
    from contextlib import closing

    from deployer.catalog.datasets.declared.recordings import declared_recordings
    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.reading import Source, below
    from deployer.catalog.datasets.reading_on_spark import read_by
    from deployer.catalog.datasets.reads.index import Indexes
    from deployer.catalog.datasets.registration import OnDuplicate, Registration
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import working
    from deployer.cli.inputs.spark_session import session_of
    from deployer.errors import NotFound
    from deployer.state import open_store

    address = root_of(root, project, stack, specs)
    sources = [each for file in files or () for each in (below(file, layer) if prefix else [Source(file, layer)])]
    with closing(open_store(address)) as store, working(f"registering with {dataset}", as_json=as_json):
        datasets = Datasets(store, address)
        try:
            record = datasets.by_name(dataset)
        except NotFound as missing:
            if not create:
                raise NotFound(missing.what, remedy=f"{missing.remedy}; --create makes the dataset") from None
            record = datasets.create(dataset)
        on_duplicate = OnDuplicate.ERROR
        if not files:
            new = declared_recordings(address, record)
            sources, on_duplicate = list(new.new), OnDuplicate.SKIP
            for line in (*new.unknown, *(f"{url}: the file changed since it was registered" for url in new.changed)):
                note(line)
        session = None if root is not None else session_of(project, stack, specs)
        registration = Registration(datasets, Indexes(address), read_by(engine.value, session))
        tasks = registration.register(record.dataset_id, sources, on_duplicate) if sources or files else []
    failed = [each for each in tasks if each.error is not None]
    good = len(tasks) - len(failed)
    if as_json:
        print_json(
            {
                "dataset": dataset,
                "registered": [
                    {"segment": each.segment, "layer": each.layer, "url": each.url, "task": each.task}
                    for each in tasks
                    if each.error is None
                ],
                "failed": [{"url": each.url, "error": each.error, "task": each.task} for each in failed],
            }
        )
    else:
        stdout().print(f"{good:,} {'recording' if good == 1 else 'recordings'} registered with {dataset}")
        for each in failed:
            note(str(each.error))
    return 1 if failed else 0
