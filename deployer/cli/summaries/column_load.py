"""The text of the result of a load of columns, the same wherever the load ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.columns.load.load import LoadResult


def result_from(document: Mapping[str, Any]) -> LoadResult:
    """Returns the result from the document that a job's program reports."""
    from deployer.columns.load.load import LoadResult
    from deployer.platform.files.dataclass_json import from_asdict

    return from_asdict(LoadResult, document, skip_unknown=True)


def print_load(name: str, done: LoadResult, *, wrote_spec: bool = False) -> None:
    """Prints what a load wrote into the table of that name."""
    from deployer.cli.console.output import note, stdout

    stdout().print(_summary(name, done))
    if done.added and not wrote_spec:
        note("the new columns are drift until the spec declares them: `--write-spec`, or `deployer drift --write-spec`")


def _summary(name: str, done: LoadResult) -> str:
    from deployer.platform.text.formatting import count, size

    if done.already_done:
        return f"{name}: job {done.job_id} was done before; nothing was written"
    stats = done.stats
    written = f"{count(stats.rows, 'row')} in {count(stats.fragments, 'fragment')}, {size(stats.bytes)}"
    reused = f", {stats.reused:,} of them from checkpoints" if stats.reused else ""
    added = f"; added {', '.join(done.added)}" if done.added else ""
    return f"{name}: loaded {', '.join(done.columns)} of {written}{reused}{added} (job {done.job_id})"
