"""`deployer table reinitialise`: empties a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, Force, ProjectDir, SpecsPath, StackName, TableName, WriteSpec


def reinitialise(
    table: TableName,
    delete_partitions: Annotated[
        bool,
        typer.Option("--delete-partitions", help="Create a new partition tree; by default, the table keeps its tree."),
    ] = False,
    split_points: Annotated[
        Path | None,
        typer.Option(
            help="With --delete-partitions: a file of split points, one per line; by default, the declared ones.",
            show_default=False,
        ),
    ] = None,
    in_base64: Annotated[bool, typer.Option("--base64", help="Each line of the file is in base64.")] = False,
    force: Force = False,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Empty a table: columns, keys, settings and its id stay. Asks for the table's name first.

    Its rows stay on storage for as long as `storage.keep_replaced_for` says, where `deployer query --at` finds them.
    """
    import datetime as dt

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import changed, confirm_by_name
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.errors import InvalidInput
    from deployer.live.former_datasets import former_datasets
    from deployer.live.reader import live_table
    from deployer.platform.text.formatting import count, size
    from deployer.state.model.times import as_document
    from deployer.tables.evolution.rewrite.truncate import reinitialise_table
    from deployer.tables.layout.partitions.split_point_files import read_split_points

    if split_points is not None and not delete_partitions:
        raise InvalidInput(
            "--split-points makes a new partition tree",
            remedy="give --delete-partitions too, or leave it out to keep the tree",
        )
    if in_base64 and split_points is None:
        raise InvalidInput("--base64 is about --split-points", remedy="leave it out, or give a file")
    with changed(project, stack, specs, table) as target:
        opened = target.opened()
        state, spec = opened.state, live_table(opened.entry, opened.state).spec
        points = read_split_points(split_points, opened.key_columns, in_base64=in_base64) if split_points else None
        if not force:
            for each in former_datasets(state):
                if each.status == "writing":
                    note(f"removes {each.location}: an interrupted rewrite")
            note(f"its data stays at {target.entry.location} for as long as storage.keep_replaced_for says")
        confirm_by_name(target.name, f"This empties {target.name} of {count(state.files.rows, 'row')}", force=force)
        done = reinitialise_table(
            target.store,
            target.root,
            target.entry.table_id,
            delete_partitions=delete_partitions,
            split_points=points,
            allow_destroy=True,
        )
        written = edit_spec(target) if write_spec else []
    until = dt.datetime.fromtimestamp(done.kept_until / 1000, dt.UTC)
    if as_json:
        print_json(as_document(done) | {"written": written})
        return 0
    stdout().print(
        f"emptied {done.table}: {count(done.rows, 'row')}, {count(done.files, 'file')} with {size(done.bytes)}; "
        f"it has {count(done.leaves, 'leaf', 'leaves')}"
    )
    note(f"its former data stays at {done.kept_at} until {until:%Y-%m-%d %H:%M} UTC")
    for file in written:
        stdout().print(f"edited {file}")
    if points is not None and points != spec.split_points and not written:
        note(
            "the next `deployer up` creates the tree that the spec declares: --write-spec, or `deployer drift "
            "--write-spec`"
        )
    return 0
