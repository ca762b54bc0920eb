"""`deployer tables`: the lake's tables and their sizes."""

from __future__ import annotations

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def tables(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the tables that exist: rows, bytes, files, leaf partitions and the last write; and those that cannot be
    read, with the reason."""
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.cli.console.activity import report_progress
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.cli.summaries.unreadable import note_unreadable
    from deployer.state import open_reader
    from deployer.state.model.times import as_document
    from deployer.tables.inspect.describe import summaries

    root = root_to_read(project, stack, specs)
    with closing(open_reader(root)) as store:
        found, unreadable = summaries(store, root, report_progress)
    if as_json:
        print_json(
            {
                "tables": [as_document(each) for each in found],
                "unreadable": [each.as_row() for each in unreadable],
            }
        )
        return 0
    if not found and not unreadable:
        note("there are no tables; `deployer up` creates those that are declared")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("table")
    for name in ("rows", "size", "files", "leaves"):
        shown.add_column(name, justify="right")
    shown.add_column("last write (UTC)")
    shown.add_column("online")
    for each in found:
        written = each.last_write.strftime("%Y-%m-%d %H:%M:%S") if each.last_write else "never"
        online = "yes" if each.online else "no"
        shown.add_row(
            each.name, f"{each.rows:,}", decimal(each.bytes), f"{each.files:,}", f"{each.leaves:,}", written, online
        )
    if found:
        stdout().print(shown)
    note_unreadable(unreadable)
    return 0
