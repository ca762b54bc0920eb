"""`deployer catalog maintain`: the maintenance of datasets of recordings, without Rerun's client."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.catalog.options import Root
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def maintain(
    dataset: Annotated[
        str | None, typer.Argument(metavar="[DATASET]", help="The dataset's name; all datasets by default.")
    ] = None,
    retrain_indexes: Annotated[bool, typer.Option("--retrain-indexes", help="Build search indexes again.")] = False,
    clean_older_than: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Remove versions that are older, such as 7d; at least 1h. Unless given, as `retention` in a dataset's "
            "spec says.",
        ),
    ] = None,
    root: Root = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Compact the tables of datasets, keep up their search indexes, and remove what killed processes left.

    Each is a run with a lease, as those of table services are: `deployer catalog runs` lists them. Recordings are not
    touched, and clients see no difference. Tables of the instance have services for this (`deployer service`).
    """
    import datetime as dt
    from contextlib import closing

    from deployer.catalog.datasets.declared.live import kept_for
    from deployer.catalog.datasets.maintenance import Maintenance, require_age
    from deployer.catalog.datasets.model.registry import Datasets
    from deployer.catalog.datasets.reads.index import Indexes
    from deployer.catalog.datasets.search.searches import Searches
    from deployer.catalog.datasets.upkeep import maintain_all, maintain_as_runs
    from deployer.cli.commands.catalog.options import root_of
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import progress_shown
    from deployer.platform.text.units import parse_duration
    from deployer.state import open_store

    address = root_of(root, project, stack, specs)
    age = None if clean_older_than is None else parse_duration(clean_older_than, option="--clean-older-than")
    moment = dt.timedelta(milliseconds=1)  # times of the catalog are whole milliseconds
    before = None if age is None else dt.datetime.now(dt.UTC) - age - moment
    wanted = Maintenance(True, True, retrain_indexes, before)
    done: dict[str, list[str]] = {}
    with closing(open_store(address)) as store, progress_shown("maintaining", as_json=as_json) as report:
        datasets = Datasets(store, address)
        searches = Searches(datasets, Indexes(address))
        if dataset is not None:
            chosen = [datasets.by_name(dataset)]
            done[dataset] = maintain_as_runs(datasets, searches, chosen[0].dataset_id, wanted, "on demand")
        else:
            require_age(datasets, wanted)
            chosen = list(datasets.all())
            done = {each.name: [] for each in chosen}
            for name, sentence in maintain_all(datasets, searches, wanted, report):
                done.setdefault(name, []).append(sentence)
        for each in chosen if age is None else ():
            if (kept := kept_for(each)) is not None:
                clean = Maintenance(clean_before=dt.datetime.now(dt.UTC) - kept - moment)
                done[each.name] += maintain_as_runs(datasets, searches, each.dataset_id, clean, "its spec's retention")
        removed = done.pop("", [])
    if as_json:
        print_json({"datasets": [{"name": name, "done": each} for name, each in done.items()], "removed": removed})
        return 0
    lines = [f"{name}: {each}" for name, sentences in done.items() for each in sentences]
    for line in [*lines, *removed]:
        stdout().print(line)
    if not lines and not removed:
        note("there is nothing to do")
    return 0
