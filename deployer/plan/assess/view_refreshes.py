"""The rows that refreshes of views would read and write, which a plan shows beside its changes. `up` does not refresh
views."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from deployer.platform.text.formatting import count, size

RefreshMode = Literal["none", "incremental", "full", "unknown"]


@dataclass(frozen=True, slots=True)
class ViewRefresh:
    """The next refresh of the view at `address` after the plan, and why.

    `rows`, `bytes` and `fragments` belong to the tables that the view reads: all of them for a full refresh, otherwise
    those that changed. `written` is the largest number of rows to write, None where it is unknown.
    """

    address: str
    mode: RefreshMode
    reason: str
    rows: int = 0
    bytes: int = 0
    fragments: int = 0
    written: int | None = None

    @property
    def name(self) -> str:
        """`database.name` of the view."""
        return self.address.partition("/")[2]


def describe_refresh(refresh: ViewRefresh) -> str:
    """Returns `nyc.late: full, since its query changes: reads 3 rows in 1 file (1.5 kB), writes at most 2 rows`."""
    if refresh.mode == "none":
        return f"{refresh.name}: nothing to refresh: {refresh.reason}"
    if refresh.mode == "unknown":
        return f"{refresh.name}: unknown: {refresh.reason}"
    read = f"reads {count(refresh.rows, 'row')} in {count(refresh.fragments, 'file')} ({size(refresh.bytes)})"
    writes = "all its rows" if refresh.written is None else f"at most {count(refresh.written, 'row')}"
    how = f"full, since {refresh.reason}" if refresh.mode == "full" else "incremental"
    return f"{refresh.name}: {how}: {read}, writes {writes}"


def refresh_as_json(refresh: ViewRefresh) -> dict[str, Any]:
    """Returns a refresh, as a part of the plan's document."""
    return asdict(refresh)
