"""Writes the diagrams of docs/concepts.md: `python .ci/diagrams.py`. They are SVG files without external resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
#: pixels: the size of a box, the gaps between boxes, and the margin
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 170, 62, 60, 46, 20


@dataclass(frozen=True, slots=True)
class Box:
    """A box at a column and a row of the grid, with a title and a line below it. A crash point is red."""

    column: int
    row: int
    title: str
    text: str = ""
    is_crash: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes by a short name, arrows as `from to label`, and a description of the picture for people who cannot see
    it."""

    title: str
    description: str
    boxes: Mapping[str, Box]
    arrows: Sequence[tuple[str, str, str]]


DIAGRAMS: Mapping[str, Diagram] = {
    "lake": Diagram(
        "Instance, tables, leaves and fragments",
        "An instance has tables. A table has a tree of leaves, one for each range of row keys. A leaf has fragments, "
        "which are files of Lance. A fragment that spans two leaves belongs to the partition above both.",
        {
            "instance": Box(1, 0, "instance", "root, clusters"),
            "trips": Box(0, 1, "table trips", "row_keys: [day]"),
            "zones": Box(2, 1, "table zones", "one leaf"),
            "low": Box(0, 2, "leaf", "day < 2026-02-01"),
            "high": Box(1, 2, "leaf", "day ≥ 2026-02-01"),
            "all": Box(2, 2, "leaf", "all keys"),
            "f0": Box(0, 3, "fragment 0", "2026-01-01 … 01-31"),
            "f1": Box(1, 3, "fragment 1", "2026-02-01 … 02-28"),
            "f2": Box(2, 3, "fragment 0", "1 … 265"),
        },
        [
            ("instance", "trips", ""),
            ("instance", "zones", ""),
            ("trips", "low", ""),
            ("trips", "high", ""),
            ("zones", "all", ""),
            ("low", "f0", ""),
            ("high", "f1", ""),
            ("all", "f2", ""),
        ],
    ),
    "plan": Diagram(
        "Spec, plan, stages, engine and state",
        "Specs and live state go into the diff, which gives a plan of changes with risks and causes. The changes of a "
        "table are ordered in stages. The engine carries the stages out through the provider. The provider commits to "
        "the state store, from which the next live state is read.",
        {
            "spec": Box(0, 0, "specs", "YAML, validated"),
            "diff": Box(1, 0, "plan", "changes, risks, causes"),
            "stages": Box(2, 0, "stages", "order in a table"),
            "engine": Box(2, 1, "engine", "embedded, or Pulumi CLI"),
            "provider": Box(1, 1, "provider", "applies the stages"),
            "state": Box(0, 1, "state store", "one log for each table"),
        },
        [
            ("spec", "diff", ""),
            ("diff", "stages", ""),
            ("stages", "engine", ""),
            ("engine", "provider", ""),
            ("provider", "state", "commit"),
            ("state", "diff", "live state"),
        ],
    ),
    "commit": Diagram(
        "The commit protocol and its crash points",
        "A writer writes data files, records its intent in the log, commits to Lance with the job's id, and records "
        "the files in the log. After a crash before the intent, only unused files are left, which are removed. After a "
        "crash between intent and Lance's commit, the intent is given up. After a crash between Lance's commit and the "
        "record, the next process records what Lance has. After the record, the job is done.",
        {
            "files": Box(0, 0, "1 write files", "not visible yet"),
            "intent": Box(1, 0, "2 record intent", "in the table's log"),
            "lance": Box(2, 0, "3 commit to Lance", "with the job's id"),
            "record": Box(3, 0, "4 record files", "in the table's log"),
            "c1": Box(0, 1, "killed after 1", "files are removed", is_crash=True),
            "c2": Box(1, 1, "killed after 2", "intent is given up", is_crash=True),
            "c3": Box(2, 1, "killed after 3", "roll-forward records it", is_crash=True),
            "c4": Box(3, 1, "killed after 4", "the job is done", is_crash=True),
        },
        [
            ("files", "intent", ""),
            ("intent", "lance", ""),
            ("lance", "record", ""),
            ("files", "c1", ""),
            ("intent", "c2", ""),
            ("lance", "c3", ""),
            ("record", "c4", ""),
        ],
    ),
    "agent": Diagram(
        "The agent",
        "The agent reads triggers, times and amounts from the state store. It queues a run of each service that is due "
        "and starts a process for it. The process holds a lease, works on the table in parts, and records the outcome "
        "in the state store. When a lease ends without a renewal, the run is FAILED.",
        {
            "state": Box(0, 0, "state store", "services, runs, leases"),
            "agent": Box(1, 0, "agent", "schedules, amounts"),
            "run": Box(2, 0, "run", "a process with a lease"),
            "metrics": Box(1, 1, "/healthz, /metrics", "JSON lines"),
            "table": Box(2, 1, "table", "committed in parts"),
            "failed": Box(0, 1, "lease ended", "the run is FAILED", is_crash=True),
        },
        [
            ("state", "agent", "due"),
            ("agent", "run", "starts"),
            ("run", "table", "commits"),
            ("agent", "metrics", ""),
            ("state", "failed", ""),
        ],
    ),
    "catalog": Diagram(
        "The catalog",
        "Rerun's client calls the catalog server over gRPC. The server lists each table of the instance as an entry, "
        "reads its newest version, and writes through the same checks and commits as a load. METASYNC publishes "
        "tables to catalogs of others, such as Glue and a Lance namespace, where other engines find them.",
        {
            "client": Box(0, 0, "Rerun's client", "rerun.catalog"),
            "server": Box(1, 0, "catalog serve", "entries, gRPC"),
            "tables": Box(2, 0, "tables", "the same commits"),
            "engines": Box(0, 1, "other engines", "LanceDB, Spark"),
            "glue": Box(1, 1, "catalogs", "Glue, Lance namespace"),
            "metasync": Box(2, 1, "METASYNC", "publishes tables"),
        },
        [
            ("client", "server", "calls"),
            ("server", "tables", ""),
            ("tables", "metasync", ""),
            ("metasync", "glue", ""),
            ("engines", "glue", "look up"),
        ],
    ),
}


def svg(diagram: Diagram) -> str:
    """Returns the picture of a diagram, with its title and description as the text alternative."""
    boxes = diagram.boxes.values()
    width = 2 * MARGIN + (WIDTH + GAP_X) * (max(box.column for box in boxes) + 1) - GAP_X
    height = 2 * MARGIN + (HEIGHT + GAP_Y) * (max(box.row for box in boxes) + 1) - GAP_Y
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="title description" font-family="sans-serif" text-anchor="middle">',
        f'<title id="title">{escape(diagram.title)}</title>',
        f'<desc id="description">{escape(diagram.description)}</desc>',
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 10 5 0 10z" fill="#3f51b5"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        *(line for start, end, label in diagram.arrows for line in _arrow(diagram.boxes, start, end, label)),
        *(line for box in boxes for line in _box(box)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _corner(box: Box) -> tuple[int, int]:
    return MARGIN + box.column * (WIDTH + GAP_X), MARGIN + box.row * (HEIGHT + GAP_Y)


def _box(box: Box) -> Iterator[str]:
    (x, y), colours = _corner(box), ("#fdecea", "#c62828") if box.is_crash else ("#e8eaf6", "#3f51b5")
    middle = x + WIDTH // 2
    yield f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{colours[0]}" stroke="{colours[1]}"/>'
    yield f'<text x="{middle}" y="{y + 26}" font-size="15" font-weight="bold" fill="#1a1a1a">{escape(box.title)}</text>'
    yield f'<text x="{middle}" y="{y + 47}" font-size="13" fill="#333333">{escape(box.text)}</text>'


def _arrow(boxes: Mapping[str, Box], start: str, end: str, label: str) -> Iterator[str]:
    """Yields a line from the edge of one box to the edge of the other, with its label in the middle."""
    (x0, y0), (x1, y1) = _corner(boxes[start]), _corner(boxes[end])
    if boxes[start].row == boxes[end].row:
        right = x1 > x0
        x0, x1 = (x0 + WIDTH, x1) if right else (x0, x1 + WIDTH)
        y0 = y1 = y0 + HEIGHT // 2
    else:
        down = y1 > y0
        x0, x1 = x0 + WIDTH // 2, x1 + WIDTH // 2
        y0, y1 = (y0 + HEIGHT, y1) if down else (y0, y1 + HEIGHT)
    yield f'<path d="M{x0} {y0} {x1} {y1}" stroke="#3f51b5" stroke-width="2" fill="none" marker-end="url(#head)"/>'
    if label:
        x, y = (x0 + x1) // 2, (y0 + y1) // 2 - 6
        yield f'<text x="{x}" y="{y}" font-size="12" fill="#1a1a1a">{escape(label)}</text>'


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, diagram in DIAGRAMS.items():
        (IMAGES / f"{name}.svg").write_text(svg(diagram), encoding="utf-8")


if __name__ == "__main__":
    main()
