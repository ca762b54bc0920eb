"""`deployer state verify` and `state repair`: check the state and repair it."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

Tables = Annotated[
    list[str] | None,
    typer.Argument(help="Tables by name or id; the instance and all its tables by default.", show_default=False),
]


def verify(
    tables: Tables = None,
    full: Annotated[
        bool, typer.Option("--full", help="Read the keys of all files, not only of 20 files per table.")
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Fold every log from its beginning, and compare with the snapshots and with the Lance datasets. Changes nothing.

    Exit codes: 0 everything agrees, 1 an error, 2 there are differences.
    """
    from contextlib import closing, suppress

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.console.progress_display import progress_shown
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.errors import DeployerError
    from deployer.platform.system.progress import Progress
    from deployer.platform.text.formatting import count
    from deployer.state import open_reader
    from deployer.tables.maintenance.verify.verify import verify as verified

    root = root_to_read(project, stack, specs)
    total, listed, done = 0, [], []
    with closing(open_reader(root)) as store, progress_shown("verifying the state", as_json=as_json) as report:
        logs = len(tables or ()) or None
        with suppress(DeployerError):  # a damaged log of the instance is one of the reported logs
            logs = logs or sum(each.status == "active" for each in store.instance().tables.values()) + 1
        report(Progress("reading logs and datasets", 0, logs, "logs"))
        for log in verified(store, root, tables or (), full=full):
            done.append(log)
            report(Progress("reading logs and datasets", len(done), logs, "logs"))
    for each in done:
        total += len(each.differences)
        if as_json:
            listed.append(
                {
                    "name": each.name,
                    "log": each.audit.log,
                    "version": each.audit.newest,
                    "entries": each.audit.entries,
                    "snapshots": list(each.audit.snapshots),
                    "files_read": each.dataset.files_read,
                    "differences": [{"where": one.where, "what": one.what} for one in each.differences],
                    "unfinished": list(each.unfinished),
                }
            )
            continue
        counted = f"{count(each.audit.entries, 'entry', 'entries')}, {count(len(each.audit.snapshots), 'snapshot')}"
        read = f", keys of {count(each.dataset.files_read, 'file')} read" if each.dataset.files_read else ""
        found = count(len(each.differences), "difference") if each.differences else "whole"
        line = f"{each.name}: {found} (version {each.audit.newest}, {counted}{read})"
        stdout().print(line, style="red" if each.differences else None, soft_wrap=True)
        for one in each.differences:
            stdout().print(f"  {one}", soft_wrap=True)
        for text in each.unfinished:
            note(f"  {text}")
    if as_json:
        print_json({"logs": listed, "differences": total})
    elif total:
        stdout().print()
        stdout().print(f"{count(total, 'difference')}; `deployer state repair --dry-run` shows what can be repaired")
    return 2 if total else 0


def repair(
    tables: Tables = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    grace: Annotated[
        float,
        typer.Option("--grace", min=0, metavar="MINUTES", help="Skip unfinished commits that are younger than this."),
    ] = 60,
    drop_history: Annotated[
        bool,
        typer.Option("--drop-history", help="Remove past states that cannot be repaired, and all older ones."),
    ] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Record what Lance has and the log lacks, discard commits that died, and rebuild damaged snapshots.

    Whatever was committed stays. Exit codes: 0 done, or nothing to do; 1 an error; 2 something cannot be repaired, or
    with --dry-run there is something to do.
    """
    import time
    from contextlib import closing

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.console.progress_display import working
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.state import open_store
    from deployer.tables.maintenance.verify.verify import repair as repaired

    root = root_to_read(project, stack, specs)
    with (
        closing(open_store(root)) as store,
        working("looking for repairs", as_json=as_json) as on_progress,
    ):
        now = time.time_ns() // 1_000_000
        found = repaired(
            store,
            root,
            tables or (),
            now=now,
            dry_run=dry_run,
            drop_history=drop_history,
            grace=int(grace * 60_000),
            on_progress=on_progress,
        )
        steps = list(found)
    for step in () if as_json else steps:
        prefix = "left as it is: " if step.left else "would be done: " if dry_run else ""
        stdout().print(f"{prefix}{step}", style="red" if step.left else None, soft_wrap=True)
    if as_json:
        listed = [{"where": step.where, "what": step.what, "left": step.left} for step in steps]
        print_json({"dry_run": dry_run, "steps": listed})
    elif not steps:
        stdout().print("nothing to repair")
    left = any(step.left for step in steps)
    return 2 if left or (dry_run and steps) else 0
