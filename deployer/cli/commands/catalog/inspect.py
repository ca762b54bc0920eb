"""`deployer catalog inspect`: the contents of recordings, without Rerun's SDK."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deployer.cli.options import AsJson


def inspect(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Recordings: paths, or s3:// addresses.")],
    as_json: AsJson = False,
) -> int:
    """Show what recordings (.rrd) hold: segments, chunks, timelines and columns.

    Reads the footers of closed recordings, and all of others. A file that is not a recording, is truncated or is
    damaged is named with the reason; the others are shown, and the exit code is 1.
    """
    from rich.box import SIMPLE_HEAD
    from rich.filesize import decimal
    from rich.table import Table

    from deployer.catalog.recordings.recording import read_recordings
    from deployer.catalog.recordings.source import open_source
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.errors import DeployerError

    found: list[tuple[str, Any]] = []
    failed: list[DeployerError] = []
    for file in files:
        try:
            with open_source(file) as source:
                found += [(file, each) for each in read_recordings(source)]
        except DeployerError as failure:
            failed.append(failure)
    if as_json:
        print_json({"recordings": [_document(*each) for each in found], "failed": [each.document() for each in failed]})
        return 1 if failed else 0
    if found:
        shown = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("file", "segment", "timelines"):
            shown.add_column(name)
        for name in ("chunks", "columns", "size"):
            shown.add_column(name, justify="right")
        for file, recording in found:
            timelines = ", ".join(timeline.name for timeline in recording.timelines())
            sizes = (f"{recording.chunks:,}", f"{len(recording.schema):,}", decimal(recording.size))
            shown.add_row(file, recording.segment, timelines, *sizes)
        stdout().print(shown)
    for each in failed:
        note(str(each))
    return 1 if failed else 0


def _document(file: str, recording: Any) -> dict[str, Any]:
    return {
        "file": file,
        "segment": recording.segment,
        "chunks": recording.chunks,
        "bytes": recording.size,
        "entities": recording.entities,
        "timelines": [
            {"name": each.name, "type": str(each.type), "first": each.first, "last": each.last}
            for each in recording.timelines()
        ],
        "columns": sorted(field.name for field in recording.schema),
    }
