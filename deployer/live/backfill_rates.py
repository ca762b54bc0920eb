"""The speed of backfills: for each computed column, that of the last run of BACKFILL that wrote its values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.state.model.entities import TableState

SERVICE = "BACKFILL"


def backfill_rates(state: TableState, columns: Collection[str]) -> Mapping[str, float]:
    """Returns the rows per second of the last run of BACKFILL that wrote each column, by the columns' current names.
    Columns that no run wrote are left out."""
    if not columns:
        return {}
    found: dict[str, tuple[int, float]] = {}
    for run in state.runs.values():
        if run.service != SERVICE or run.started_at is None or run.ended_at is None or not run.figures.rows_out:
            continue
        said = run.figures.after.get("seconds")  # without the preparation of the run
        seconds = said if isinstance(said, int | float) and said > 0 else (run.ended_at - run.started_at) / 1000
        rate = run.figures.rows_out / max(seconds, 0.001)
        for name in columns:
            if name in run.columns and run.ended_at >= found.get(name, (0, 0.0))[0]:
                found[name] = (run.ended_at, rate)
    return {name: rate for name, (_, rate) in found.items()}
