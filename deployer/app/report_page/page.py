"""The report of a lake as an HTML page, with its drawings: horizontal positions in percent of the width, vertical ones
in pixels."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployer.app.report_page.datasets import DatasetView
from deployer.app.report_page.services import ServicesView
from deployer.live.freshness import Freshness
from deployer.plan.assess.pending_backfills import describe_pending
from deployer.plan.render.changes import describe_options
from deployer.plan.render.html import render_page
from deployer.platform.system.clock import utc
from deployer.platform.text.formatting import count
from deployer.specs.types.view import staleness_of
from deployer.tables.inspect.report import Fragment, IndexReport, Span, TableReport, UnreadableTable
from deployer.tables.inspect.sensitive import SHOWN_AS
from deployer.tables.inspect.versions import TableVersion

_MIDNIGHT = re.compile(r"(?<=^\d{4}-\d\d-\d\d)[ T]00:00:00(\.0+)?(Z|[+-]\d\d:?\d\d)?$|\.0+(?=Z|[+-]\d\d:?\d\d$)")
_LANES = 8  #: rows of fragments below the leaves; further fragments are drawn into the last row
_DRAWN_FRAGMENTS = 400
_DRAWN_VERSIONS = 200
_LISTED_VERSIONS = 50
_SLOTS = 28  #: places of versions in a history, so that few versions do not look like blocks
#: the least distance of two labels as a share of the width, on a wide and a narrow page
_WIDE_GAP, _NARROW_GAP = 0.13, 0.34


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle: `left` and `width` in percent, `top` and `height` in pixels."""

    left: float
    width: float
    top: int
    height: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """A text below the drawing. `wide` labels are shown only where there is room; `anchor` is SVG's `text-anchor`."""

    at: float
    text: str
    anchor: str
    wide: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing with its labels. `dropped` is the number of things that are not drawn because there are too many."""

    bars: tuple[Bar, ...]
    labels: tuple[Label, ...]
    height: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class DriftView:
    """The drift on the page: `lines` has a line for each difference, `undeclared` the resources without a spec with the
    reason.

    `unreadable` are tables whose drift is unknown, with the reason. `unknown` is why the drift could not be determined;
    empty where it could.
    """

    stack: str
    lines: tuple[DriftLine, ...] = ()
    undeclared: tuple[tuple[str, str], ...] = ()
    unknown: str = ""
    unreadable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class DriftLine:
    """One difference: the resource, the change, its author and time, and the dataset's version (empty: unknown)."""

    address: str
    what: str
    who: str
    when: str
    version: str


def report_page(
    instance: str,
    root: str,
    tables: Sequence[TableReport | UnreadableTable],
    services: Mapping[str, ServicesView],
    drift: DriftView,
    now: dt.datetime,
    datasets: Sequence[DatasetView] = (),
) -> str:
    """Returns the whole page. `services` has the services by the table's name; `now` is the time of the page (UTC)."""
    whole = [table for table in tables if isinstance(table, TableReport)]
    largest = max((table.description.summary.bytes for table in whole), default=0) or 1
    return render_page(
        "report.html.j2",
        instance=instance,
        root=root,
        now=now,
        describe_pending=describe_pending,
        drift=drift,
        datasets=datasets,
        tables=tables,
        broken=[table for table in tables if isinstance(table, UnreadableTable)],
        moment=moment,
        views=[_view(table, services, largest, index) for index, table in enumerate(whole)],
        services=sum(len(view.report.services) for view in services.values()),
        wrong=[(name, each) for name, view in services.items() for each in view.wrong],
        late=[(table.description.summary.name, why) for table in whole if (why := _late(table, now))],
        rows=sum(table.description.summary.rows for table in whole),
        bytes=sum(table.description.summary.bytes for table in whole),
        files=sum(table.description.summary.files for table in whole),
    )


def _view(table: TableReport, services: Mapping[str, ServicesView], largest: int, index: int) -> dict[str, Any]:
    summary = table.description.summary
    return {
        **table_view(table, services.get(summary.name)),
        "id": f"t{index}",  # a counter, so that no table name becomes part of an HTML id
        "share": 100 * summary.bytes / largest,
    }


def table_view(table: TableReport, services: ServicesView | None) -> dict[str, Any]:
    """Returns the values that `table_body.html.j2` shows of a table, including its history."""
    return {
        "table": table,
        "services": services,
        "made_of": table.description.view,
        "keys": key_space(table),
        "timeline": timeline(table.versions),
        "indexes": [_index_view(index) for index in table.indexes],
        "listed": table.versions[:_LISTED_VERSIONS],
        "older": max(len(table.versions) - _LISTED_VERSIONS, 0),
        "what": what,
        "label": lambda version: label(version, table.versions),
    }


def moment(at: int) -> str:
    """Returns a time (ms since 1970) as a text to the minute."""
    return utc(at)[:16]


def _late(table: TableReport, now: dt.datetime) -> str:
    """Returns why a view is late, and by how much; empty for a view that is not late, and for tables."""
    view = table.description.view
    if view is None or view.max_staleness is None or not view.behind:
        return ""
    changed = {name: round(at.timestamp() * 1000) for name, at in view.behind.items()}
    refreshed = None if view.refreshed_at is None else round(view.refreshed_at.timestamp() * 1000)
    return Freshness(staleness_of(view.max_staleness), refreshed, changed).why_late(round(now.timestamp() * 1000))


def _index_view(report: IndexReport) -> dict[str, Any]:
    index = report.info
    rows = index.indexed_rows + index.unindexed_rows
    waits = f"waits for {count(index.waits_for_rows, 'row')}" if index.status == "pending" else ""
    return {
        "index": index,
        "parameters": describe_options(index.parameters),
        "share": 100 * index.indexed_rows / rows if rows else 0,
        "bytes": report.bytes,
        "status": waits or ("" if index.status == "ready" else index.status),
    }


def key_space(table: TableReport) -> Drawing:
    """Draws the leaves in the order of keys, as wide as their share of rows, and below them the fragments' key
    ranges."""
    bars = []
    hidden = _hidden_keys(table)
    for number, (leaf, span) in enumerate(table.leaves):
        bounds = _bounds(*(_masked(key, hidden) for key in (leaf.lower, leaf.upper)))
        title = f"leaf {number + 1}: {bounds}, {count(leaf.rows, 'row')}, "
        title += count(leaf.files, "fragment")
        kind = "leaf" if leaf.rows else "leaf hollow"
        bars.append(_bar(span, 0, 34, kind, title))
    shown = [fragment for fragment in table.fragments if fragment.span is not None][:_DRAWN_FRAGMENTS]
    lanes: list[float] = []
    for fragment in sorted(shown, key=lambda each: _span(each).start):
        span = _span(fragment)
        lane = next((index for index, end in enumerate(lanes) if end <= span.start + 1e-9), len(lanes))
        lane = min(lane, _LANES - 1)
        lanes[lane : lane + 1] = [max(span.end, lanes[lane] if lane < len(lanes) else 0)]
        title = f"fragment {fragment.fragment_id}: {count(fragment.rows, 'row')}"
        title += ", sorted" if fragment.sorted else "" if fragment.placed else ", lies across leaves"
        bars.append(_bar(span, 42 + 9 * lane, 6, "fragment" if fragment.placed else "fragment loose", title))
    height = 42 + 9 * max(len(lanes), 1)
    return Drawing(tuple(bars), _split_labels(table), height, len(table.fragments) - len(shown))


def _span(fragment: Fragment) -> Span:
    assert fragment.span is not None  # noqa: S101 -- fragments without a span are not drawn
    return fragment.span


def _bar(span: Span, top: int, height: int, kind: str, title: str) -> Bar:
    return Bar(round(100 * span.start, 3), round(max(100 * (span.end - span.start), 0.25), 3), top, height, kind, title)


def _split_labels(table: TableReport) -> tuple[Label, ...]:
    if not table.description.row_keys:
        return ()
    labels = [Label(0, "least key", "start", False)]
    wide = narrow = 0.0
    hidden = _hidden_keys(table)
    for leaf, span in table.leaves[1:]:
        if span.start - wide < _WIDE_GAP or 1 - span.start < _WIDE_GAP:
            continue
        fits_narrow = span.start - narrow >= _NARROW_GAP and 1 - span.start >= _NARROW_GAP
        key = _key(_masked(leaf.lower, hidden))
        labels.append(Label(round(100 * span.start, 3), key, "middle", not fits_narrow))
        wide = span.start
        narrow = span.start if fits_narrow else narrow
    return (*labels, Label(100, "greatest key", "end", False))


def timeline(versions: Sequence[TableVersion]) -> Drawing:
    """Draws the newest versions, the oldest on the left. The height of a bar grows with the number of rows that the
    version changed; versions without a change of rows are stubs."""
    drawn = list(reversed(versions[:_DRAWN_VERSIONS]))
    most = max((abs(version.rows or 0) for version in drawn), default=0) or 1
    height, step = 64, 100 / max(len(drawn), _SLOTS)
    bars = []
    for index, version in enumerate(drawn):
        tall = max(round(height * (abs(version.rows or 0) / most) ** 0.5), 6)
        rows = "" if version.rows is None else f", {version.rows:+,} rows"
        who = ", not by deployer" if version.foreign else f", by {version.author}" if version.author else ""
        title = f"version {label(version, versions)}: {what(version)}{rows}, {version.at:%Y-%m-%d %H:%M:%S} UTC{who}"
        kind = "event foreign" if version.foreign else "event rows" if version.rows else "event"
        bars.append(Bar(round(index * step, 3), round(step * 0.72, 3), height - tall, tall, kind, title))
    return Drawing(tuple(bars), _date_labels(drawn, step), height, len(versions) - len(drawn))


def _date_labels(drawn: Sequence[TableVersion], step: float) -> tuple[Label, ...]:
    """Returns the date of the first version, and of each later day for which there is room; times if all versions are
    of the same day."""
    if not drawn:
        return ()
    by_day = drawn[0].at.date() != drawn[-1].at.date()
    labels: list[Label] = []
    wide = narrow = -100.0
    previous = ""
    for index, version in enumerate(drawn):
        at, text = index * step, f"{version.at:%Y-%m-%d}" if by_day else f"{version.at:%H:%M}"
        if text == previous or at - wide < 100 * _WIDE_GAP or at > 100 - 100 * _WIDE_GAP:
            continue
        fits_narrow = at - narrow >= 100 * _NARROW_GAP and at <= 100 - 100 * _NARROW_GAP
        shown = text if index else f"{version.at:%Y-%m-%d %H:%M} UTC"
        labels.append(Label(round(at, 3), shown, "start", not fits_narrow))
        previous, wide, narrow = text, at + (100 * _WIDE_GAP if not index else 0), at if fits_narrow else narrow
    return tuple(labels)


def what(version: TableVersion) -> str:
    """Returns what a version did, in the words of `deployer history`."""
    what = version.kind or version.operation or "unknown"
    return f"{what}: {'; '.join(version.changes)}" if version.changes else what


def label(version: TableVersion, versions: Sequence[TableVersion]) -> str:
    """Returns a version's number in the form that `query --at` takes. For versions before a rewrite, the dataset's
    number precedes it."""
    return str(version.version) if version.dataset == versions[0].dataset else f"{version.dataset}:{version.version}"


def _hidden_keys(table: TableReport) -> list[bool]:
    """Returns for each row key whether its values are hidden."""
    sensitive = {column.name for column in table.description.columns if column.sensitive}
    return [name in sensitive for name in table.description.row_keys]


def _masked(key: tuple[Any, ...] | None, hidden: Sequence[bool]) -> tuple[Any, ...] | None:
    """Returns a split point with a placeholder instead of hidden values."""
    if key is None:
        return None
    return tuple(SHOWN_AS if is_hidden else value for value, is_hidden in zip(key, hidden, strict=False))


def _bounds(lower: tuple[Any, ...] | None, upper: tuple[Any, ...] | None) -> str:
    if lower is None and upper is None:
        return "all keys"
    if lower is None:
        return f"keys below {_key(upper)}"
    return f"keys from {_key(lower)}" + (f" to below {_key(upper)}" if upper is not None else "")


def _key(key: tuple[Any, ...] | None) -> str:
    shown = (value.hex() if isinstance(value, bytes) else _MIDNIGHT.sub("", str(value)) for value in key or ())
    text = ", ".join(shown)
    return text if len(text) <= 28 else text[:27] + "…"
