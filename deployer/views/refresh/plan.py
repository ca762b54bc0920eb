"""The plan of a refresh of a view: decided from logs and manifests, without opening a data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deployer.errors import NotFound
from deployer.platform.text.formatting import count
from deployer.tables.changes.commits import Commit
from deployer.tables.changes.feed import commits_of
from deployer.tables.changes.reading import Reading, reading_of
from deployer.tables.changes.timeline import Position
from deployer.tables.open_table import ReadTable
from deployer.views.definition import ReflectedInputs, SourceVersion
from deployer.views.query.model import ROW_ID, ChangeKind, ViewQuery, ViewSource
from deployer.views.refresh.record import changed_by_others, reflected
from deployer.views.refresh.results import RefreshMode
from deployer.views.refresh.sources import Source

MOST_CHANGED = 0.5  #: the share of changed rows of a source above which all its rows are read instead of its changes
MOST_BYTES = 1 << 30  #: the largest size of the changed rows, which are in memory at once


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """The plan of a refresh. `reason` says why it is a full one, or that there is nothing to do.

    `fragments`, `rows` and `bytes` count what the refresh reads from the sources: everything in a full refresh, else
    what commits have changed since the last refresh. `stored_rows` counts the view's own rows. `reflects` and
    `would_reflect` are the versions of the sources, by name, before and after the refresh.
    """

    table: str
    mode: RefreshMode
    reason: str
    fragments: int
    rows: int
    bytes: int
    commits: int
    reflects: Mapping[str, str]
    would_reflect: Mapping[str, str]
    stored_rows: int


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The changes of one source: the commits that changed rows, and how their rows are read."""

    source: Source
    reading: Reading
    commits: tuple[Commit, ...]

    @property
    def rows(self) -> int:
        return sum(part.changed for commit in self.commits for part in commit.parts)

    @property
    def bytes(self) -> int:
        parts = [part for commit in self.commits for part in commit.parts]
        return sum(part.bytes * part.changed // part.rows for part in parts if part.rows)

    @property
    def fragments(self) -> int:
        return len({(commit.position.dataset, part.fragment_id) for commit in self.commits for part in commit.parts})

    @property
    def kinds(self) -> frozenset[ChangeKind]:
        """The kinds of changes that the commits may contain."""
        found = set[ChangeKind]()
        took = put = False
        for commit in self.commits:
            if commit.written:
                found.add("update")
            took |= bool(commit.gone or commit.masked) and commit.before is not None
            put |= bool(commit.added or commit.restores)
        if put:
            found.add("insert")
        if took:
            found.add("delete")
        if took and put:
            found.add("update")
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Decision:
    """The kind of a refresh. `changes` has the changes of each changed source, for an incremental refresh."""

    mode: RefreshMode
    reason: str
    base: ReflectedInputs | None
    changes: Mapping[str, SourceChange] = field(default_factory=dict)
    moves: bool = False  #: the view reflects other versions after the refresh than before


def decide(
    view: ReadTable, query: ViewQuery, fingerprint: str, sources: Mapping[str, Source], *, full: bool = False
) -> Decision:
    """Returns how the view is refreshed from the sources at their versions. Reads only manifests and logs."""
    base = reflected(view.state)
    if base is None:
        return Decision("full", "the view was never refreshed", None)
    if full:
        return Decision("full", "a full refresh was asked for", base)
    if base.fingerprint != fingerprint:
        return Decision("full", "the view's query was changed", base)
    if missing := [name for name in query.stored_schema.names if name not in view.schema.names]:
        lacks = f"its sources have other keys than when the view was created, and it has no column {missing[0]}"
        return Decision("full", lacks, base)
    if other := changed_by_others(view):
        return Decision("full", other, base)
    known = {each.table_id: each for each in base.sources}
    changes: dict[str, SourceChange] = {}
    moves = False
    for read in query.sources:
        source = sources[read.table]
        since = known.get(source.table.entry.table_id)
        if since is None:
            return Decision("full", f"another table has the name {read.table} now", base)
        moves |= (since.dataset, since.lance_version) != (source.position.dataset, source.position.version)
        found = _change_of(source, read, since)
        if isinstance(found, str):
            return Decision("full", found, base)
        if found is None or not found.commits:
            continue
        for kind in sorted(found.kinds):
            if why := query.full_refresh.get((read.table, kind)):
                return Decision("full", why, base)
        changes[read.table] = found
    if not changes:
        return Decision("none", "no row of a source has changed", base, moves=moves)
    return _worth_it(Decision("incremental", "", base, changes, moves=True))


def _change_of(source: Source, read: ViewSource, since: SourceVersion) -> SourceChange | str | None:
    """Returns the changes of a source, or None if its version is the same. Returns a text where the changes are unknown
    or cannot be applied; the text says why."""
    table, line = source.table, source.line
    begin = Position(since.dataset, since.lance_version)
    if begin == source.position:
        return None
    if since.dataset != source.position.dataset and (why := _other_identity(source, since)):
        return why
    columns = [name for name in read.columns if name != ROW_ID]
    try:
        if line.is_behind(begin, source.position):
            return f"version {source.position} of {source.name} is before {begin}, which the view reflects"
        dataset = source.dataset
        commits = tuple(commits_of(table, line, columns, timed=False).between(begin, source.position))
    except NotFound as removed:
        return f"the changes of {source.name} are not kept: {removed.what}"
    reading = reading_of(table, dataset, columns)
    if not source.is_newest:
        reading = replace(reading, home=source.position)
    return SourceChange(source, reading, commits)


def _other_identity(source: Source, since: SourceVersion) -> str:
    """Returns why the rows of a source that was rewritten since the last refresh cannot be identified again. Returns an
    empty text where they can."""
    rewritten = f"{source.name} was rewritten since"
    if not source.row_keys:
        return f"{rewritten}, and its rows have no keys by which they are known"
    try:
        before = source.table.store.table(since.table_id, at=since.state_version).properties.row_keys
    except NotFound:
        return f"{rewritten}, and its former row keys are unknown"
    return "" if before == source.row_keys else f"{source.name} has other row keys since"


def _worth_it(found: Decision) -> Decision:
    """Returns the decision, changed to a full refresh where the changes of a source are too many or too large."""
    for name, change in found.changes.items():
        rows = change.source.table.state.files.rows
        if change.rows > max(MOST_CHANGED * rows, 100_000):
            why = f"{count(change.rows, 'row')} of {name} were touched, which has {count(rows, 'row')}"
            return replace(found, mode="full", reason=why, changes={})
        if change.bytes > MOST_BYTES and change.rows > MOST_CHANGED * rows / 2:
            why = f"the changes of {name} are more than fit into memory"
            return replace(found, mode="full", reason=why, changes={})
    return found


def plan_of(view: ReadTable, query: ViewQuery, found: Decision, sources: Mapping[str, Source]) -> RefreshPlan:
    """Returns the plan of a decision, with the amounts that the refresh would read."""
    by_id = {} if found.base is None else {each.table_id: each for each in found.base.sources}
    since, until = dict[str, str](), dict[str, str]()
    fragments = rows = size = 0
    for read in query.sources:
        source = sources[read.table]
        known = by_id.get(source.table.entry.table_id)
        if known is not None:
            since[read.table] = f"{known.dataset}:{known.lance_version}"
        until[read.table] = str(source.position)
        if found.mode == "full":
            parts = _whole(source)
        else:
            change = found.changes.get(read.table)
            parts = (0, 0, 0) if change is None else (change.fragments, change.rows, change.bytes)
        fragments, rows, size = fragments + parts[0], rows + parts[1], size + parts[2]
    commits = sum(len(change.commits) for change in found.changes.values())
    name = view.entry.full_name
    stored = view.state.files.rows
    return RefreshPlan(
        table=name,
        mode=found.mode,
        reason=found.reason,
        fragments=fragments,
        rows=rows,
        bytes=size,
        commits=commits,
        reflects=since,
        would_reflect=until,
        stored_rows=stored,
    )


def _whole(source: Source) -> tuple[int, int, int]:
    """Returns the number of fragments, rows and bytes of a source, from the table's log for its newest version and from
    Lance's manifest for an earlier one."""
    if source.is_newest:
        files = source.table.state.files
        return files.count, files.rows, sum(file.bytes for file in files)
    found = [each.metadata for each in source.dataset.get_fragments()]
    size = sum(file.file_size_bytes or 0 for each in found for file in each.files)
    return len(found), sum(int(each.num_rows) for each in found), size
