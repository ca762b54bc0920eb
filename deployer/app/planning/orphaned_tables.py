"""Deletions of a plan that no engine does: of tables and datasets that this stack manages but Pulumi's state lacks
(such as those of `deployer table add`), of tables that cannot be read, and of tables whose deletion was interrupted."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from deployer.app.stack.state import applied_resources
from deployer.state import open_store
from deployer.tables.admin.deletion import delete_table

if TYPE_CHECKING:
    from deployer.app.planning.plan import Planned
    from deployer.app.reporter import Reporter
    from deployer.app.workspace import Workspace


def finish_deletions(workspace: Workspace, planned: Planned, reporter: Reporter) -> dict[str, str]:
    """Completes the interrupted deletions of the plan, and deletes everything else in it that no engine deletes. Notes
    each deletion.

    Returns the addresses of the tables whose deletion was interrupted, by the tables' ids.
    """
    ended = _end_deletions(workspace, planned)
    for address in ended.values():
        reporter.note(f"completed the deletion of {address}, which was interrupted")
    for line in _delete_unknown(workspace, planned):
        reporter.note(line)
    return ended


def _end_deletions(workspace: Workspace, planned: Planned) -> dict[str, str]:
    """Completes the interrupted deletions. Returns the addresses of the tables by their ids."""
    unfinished = {each.table_id: each.address for each in planned.plan.removals if each.kind == "deleting"}
    if not unfinished:
        return {}
    root = workspace.root(planned.lake)
    with closing(open_store(root)) as store:
        for table_id, address in unfinished.items():
            delete_table(store, root, table_id, allow_destroy=address in planned.allow_destroy)
    return dict(sorted(unfinished.items(), key=lambda each: each[1]))


def _delete_unknown(workspace: Workspace, planned: Planned) -> list[str]:
    """Deletes the tables and datasets that no engine deletes. Returns a line for each."""
    gone = [each for each in planned.plan.resources if each.action == "delete" and each.table_id]
    if not gone:
        return []
    known = {each.id for each in applied_resources(workspace, planned.engine()).values()}
    unreadable = planned.live.unreadable.keys()  # Pulumi would read these tables before it deletes them
    root = workspace.root(planned.lake)
    notes = []
    for each in sorted(gone, key=lambda each: each.address):
        if each.address.startswith("dataset/"):
            if each.table_id not in known:
                _delete_dataset(workspace, root, each.table_id)
                notes.append(f"deleted {each.address}, which Pulumi's state did not know")
        elif each.live_address in unreadable or each.table_id not in known:
            with closing(open_store(root)) as store:
                delete_table(
                    store, root, each.table_id, allow_destroy=True, delete_savepoints=workspace.delete_savepoints
                )
            why = "which could not be read" if each.live_address in unreadable else "which Pulumi's state did not know"
            notes.append(f"deleted {each.address}, {why}")
    return notes


def _delete_dataset(workspace: Workspace, root: str, dataset_id: str) -> None:
    from deployer.catalog.datasets.declared.apply import DeclaredDatasets  # it loads Arrow and Rerun's messages

    with closing(open_store(root)) as store:
        DeclaredDatasets(store, root, workspace.dir).delete(dataset_id, allow_destroy=True)
