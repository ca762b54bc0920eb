"""The text of the result of a service run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deployer.cli.console.output import note, stdout
from deployer.cli.summaries.refreshes import failures, refreshed
from deployer.platform.text.formatting import count, size
from deployer.services.kinds.backfill.results import BackfillResult
from deployer.services.kinds.clean import CleanResult
from deployer.services.kinds.cluster.depth import Depth
from deployer.services.kinds.cluster.results import ClusterResult
from deployer.services.kinds.compact.results import CompactResult
from deployer.services.kinds.expire.results import ExpireResult
from deployer.services.kinds.ingest.results import IngestFilesResult
from deployer.services.kinds.metasync.results import MetasyncResult, PublishedEntry
from deployer.services.restore.restoring import Restored
from deployer.services.savepoints.autosavepoint import AutosavepointResult
from deployer.specs.types.column_names import listed
from deployer.views.refresh.results import RefreshJobResult

if TYPE_CHECKING:
    from deployer.services.registry import ServiceResult


def print_done(
    done: ServiceResult,
) -> None:
    """Prints what was done, or why nothing was."""
    if isinstance(done, IngestFilesResult):
        _ingested(done)
    elif done.status == "SKIPPED":
        stdout().print(f"{done.table}: nothing to do: {done.why}")
        if isinstance(done, ClusterResult):
            stdout().print(f"overlap depth {_depth(done.depth_before.of_all, done.columns)}")
    elif isinstance(done, ClusterResult):
        _clustered(done)
    elif isinstance(done, CleanResult):
        _cleaned(done)
    elif isinstance(done, MetasyncResult):
        _metasynced(done)
    elif isinstance(done, ExpireResult):
        _expired(done)
    elif isinstance(done, BackfillResult):
        _backfilled(done)
    elif isinstance(done, RefreshJobResult):
        stdout().print(refreshed(done))
        if failed := failures(done):
            note(failed)
    elif isinstance(done, AutosavepointResult):
        _autosaved(done)
    elif isinstance(done, Restored):
        stdout().print(f"{done.table}: restored to {done.undone.point.label}, as version {done.lance_version}")
    else:
        _compacted(done)


def _cleaned(done: CleanResult) -> None:
    before, after, gone = done.before, done.after, done.removed
    what = [f"{count(gone.versions, 'version')} ({_ranges(gone.numbers)})"] if gone.versions else []
    what += [count(gone.files, "file") + " that no version has"] if gone.files else []
    what += [count(len(gone.datasets), "replaced dataset")] if gone.datasets else []
    what += [count(len(gone.jobs), "unfinished commit")] if gone.jobs else []
    what += [count(len(gone.savepoints), "expired savepoint")] if gone.savepoints else []
    if done.dry_run:
        stdout().print(f"{done.table}: would remove {', '.join(what)}: {size(gone.bytes)}")
    else:
        stdout().print(
            f"{done.table}: {before.versions:,} → {count(after.versions, 'version')}, {before.files:,} → "
            f"{count(after.files, 'file')}, {size(before.bytes)} → {size(after.bytes)}: removed {', '.join(what)}"
        )
    for location, bytes_ in zip(gone.datasets, gone.dataset_bytes, strict=True):
        stdout().print(f"  dataset {location}: {size(bytes_)}", style="dim")
    for each in gone.kept:
        note(f"kept {each}")
    if gone.why_not:
        note(f"files that no version has were not checked: {gone.why_not}")


def _expired(done: ExpireResult) -> None:
    if done.dry_run:
        stdout().print(f"{done.table}: {done.why}")
        return
    before, after = done.before, done.after
    whole = f", {count(done.whole_files, 'file')} of them whole ({done.whole_rows:,} rows)" if done.whole_files else ""
    stdout().print(
        f"{done.table}: {count(done.rows, 'row')} before {done.before_time} expired{whole}: {before.rows:,} → "
        f"{count(after.rows, 'row')}, {before.files:,} → {count(after.files, 'file')}"
    )
    if done.holds:
        note(f"{done.why}: {', '.join(done.holds)}")


def _ingested(done: IngestFilesResult) -> None:
    if done.files:
        rate = done.rows / done.seconds if done.seconds else 0
        stdout().print(
            f"{done.table}: {count(done.files, 'file')} loaded, {count(done.rows, 'row')}, {size(done.bytes)}, in "
            f"{count(done.commits, 'commit')} ({done.seconds:.1f} s, {rate:,.0f} rows/s)"
        )
    else:
        stdout().print(f"{done.table}: nothing to do: {done.why}")
    for each in done.problems:
        note(f"{each.path}: {each.reason}")
    if done.set_aside or done.changed:
        note(f"{done.why}: `deployer service files {done.table} --status set-aside` (or changed) lists them")
    if done.messages or done.unknown:
        outside = f", {done.outside:,} of them about files outside of the place" if done.outside else ""
        outside += f"; {count(done.gone, 'named file is', 'named files are')} gone" if done.gone else ""
        unknown = f"; {done.unknown:,} that are not notifications stay in it" if done.unknown else ""
        note(f"{count(done.messages, 'message')} of the queue{outside}{unknown}")


def _backfilled(done: BackfillResult) -> None:
    for each in done.columns:
        stdout().print(
            f"{done.table}: computed {each.column} of {count(each.rows, 'row')} in "
            f"{count(each.fragments, 'fragment')}, {size(each.bytes)}"
        )
        if each.errors:
            note(f"{count(each.errors, 'row')} failed: `deployer column errors {done.table} --job-id {each.job_id}`")


def _ranges(numbers: Sequence[int], most: int = 8) -> str:
    """Returns numbers as ranges, such as `1 to 7, 9`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = [str(low) if low == high else f"{low} to {high}" for low, high in found[:most]]
    return ", ".join([*shown, f"and {len(found) - most} ranges more"] if len(found) > most else shown)


def _metasynced(done: MetasyncResult) -> None:
    for each in done.targets:
        version = "" if each.version_after is None else f" version {each.version_after}"
        stdout().print(f"{done.table}: {each.action}{version}: {each.target}")
        _note_changes_of_others(each)
    for each in done.gone:
        stdout().print(f"entry of a table that is deleted: {each.action}: {each.target}")
        _note_changes_of_others(each)


def _note_changes_of_others(each: PublishedEntry) -> None:
    if each.action == "left":
        note(f"{each.target} was changed by another program, so the run did not change it")
    elif each.changed_by_others:
        note(f"another program changed it: {', '.join(each.changed_by_others)}")
    elif each.failure:
        note(each.failure)


def _autosaved(done: AutosavepointResult) -> None:
    name = done.savepoint.name if done.savepoint else ""
    stdout().print(f"{done.table}: savepoint {name} at version {done.lance_version}")
    if done.removed:
        note(f"removed old ones: {', '.join(done.removed)}")


def _compacted(done: CompactResult) -> None:
    out = stdout()
    before, after, work = done.before, done.after, done.work
    rate = work.rows / done.seconds if done.seconds else 0
    out.print(
        f"{done.table}: {before.files:,} → {count(after.files, 'file')}, {size(before.bytes)} → {size(after.bytes)}, "
        f"{count(work.rows, 'row')} rewritten, {count(work.deleted_rows, 'deleted row')} dropped, in "
        f"{count(work.portions, 'portion')} ({done.seconds:.1f} s, {rate:,.0f} rows/s)"
    )
    _how(done)


def _clustered(done: ClusterResult) -> None:
    out = stdout()
    before, after, work = done.before, done.after, done.work
    by = f"{done.curve} over {listed(done.columns)}"
    depth = done.depth_before.of_all
    if done.dry_run:
        out.print(f"{done.table}, by {by}: overlap depth {_depth(depth, done.columns)}; {done.why}")
        _leaves(done)
        return
    rate = work.rows / done.seconds if done.seconds else 0
    out.print(
        f"{done.table}: clustered by {by}: {before.files:,} → {count(after.files, 'file')}, {size(before.bytes)} → "
        f"{size(after.bytes)}, {count(work.rows, 'row')} rewritten in {count(work.portions, 'portion')} "
        f"({done.seconds:.1f} s, {rate:,.0f} rows/s)"
    )
    out.print(f"overlap depth {_depth(depth, done.columns)} → {_depth(done.depth_after.of_all, done.columns)}")
    _leaves(done)
    _how(done)


def _depth(depth: Depth, columns: Sequence[str] = ()) -> str:
    """Returns a depth as a text, such as `1.20 (at most 3 of 16 files; by carrier 4.1, by delay 3.9)`."""
    alone = [f"by {name} {each:.1f}" for name, each in zip(columns, depth.by_column, strict=False)]
    more = "; " + ", ".join(alone) if len(alone) > 1 else ""
    return f"{depth.average:.2f} (at most {depth.most} of {count(depth.files, 'file')}{more})"


def _leaves(done: ClusterResult, most: int = 20) -> None:
    """Prints the depth of each leaf where there are several, the deepest first."""
    before, after = done.depth_before.leaves, done.depth_after.leaves
    if len(before) < 2:
        return
    for name, depth in sorted(before.items(), key=lambda leaf: (-leaf[1].average, leaf[0]))[:most]:
        then = "" if done.dry_run or name not in after else f" → {_depth(after[name])}"
        stdout().print(f"  leaf {name}: {_depth(depth)}{then}", style="dim")
    if len(before) > most:
        stdout().print(f"  and {count(len(before) - most, 'leaf', 'leaves')} more", style="dim")


def _how(done: CompactResult | ClusterResult) -> None:
    """Prints where the run was, and the outcome of conflicts and indexes."""
    out, work = stdout(), done.work
    where = "with Spark" if done.engine == "spark" else "in this process"
    out.print(f"run {done.run_id}, {where}: {done.reason}", style="dim")
    if work.conflicts:
        were = count(work.conflicts, "portion was", "portions were")
        note(f"{were} planned again, as others had changed their files")
    if done.status == "CANCELLED":
        note(f"the run ended early ({done.why}): what is listed here is committed, and the rest is unchanged")
    if done.indexes.updated or done.indexes.built:
        out.print(f"indexes brought up to date: {', '.join((*done.indexes.built, *done.indexes.updated))}")
    if done.indexes.failure:
        note(f"indexes are behind: {done.indexes.failure}; the next load or run tries again")
