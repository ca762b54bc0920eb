"""The report of real lakes: whole, escaped, without anything from elsewhere, and drawn by a real browser."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.app.report_page.page import key_space, timeline
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.tables.inspect.report import TableReport, lake_report, leaf_spans
from deployer.tables.inspect.versions import TableVersion
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run, table

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'single' {{ 7 * 7 }} </title></style> ]]>"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Page(HTMLParser):
    """Collects the text, and refuses what does not nest, runs or fetches."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "iframe", "object", "embed", "link", "base", "form", "use", "image")
        values = dict(attrs)
        assert not {name for name in values if name.startswith("on") or name in ("src", "srcset", "xlink:href")}
        self.tags.append(f"{tag}.{values.get('class') or ''}")
        if "id" in values:
            self.ids.add(f"#{values['id']}")
        if "href" in values:
            self.links.add(values["href"] or "")
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "line"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(page: str) -> Page:
    parser = Page()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


QUOTED = HOSTILE.replace("'", "''")
SPECS = {
    "demo.yaml": INSTANCE,
    "flights.yaml": table(
        "flights", "delay: int32", more="partitions: {split_points: [100, 200]}\ntags: {tier: gold}\n"
    ),
    "planes.yaml": table("planes", more=f"description: '{QUOTED}'\ntags: {{note: '{QUOTED}'}}\n"),
}


def load() -> None:
    for number, ids in enumerate((range(150), range(120, 300))):
        file = Path(f"{number}.csv")
        file.write_text("id,delay\n" + "".join(f"{each + 1000 * number},1\n" for each in ids), encoding="utf-8")
        run("ingest", "air.flights", str(file), "--engine", "driver")
    [location] = Path("lakes/demo/air").glob("flights-*.lance")
    dataset = lance.dataset(str(location))
    lance.write_dataset(pa.table({"id": [50, 250], "delay": [1, 2]}).cast(dataset.schema), dataset.uri, mode="append")
    lance.dataset(dataset.uri).create_scalar_index("delay", "BTREE")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """flights has three leaves, two loads and a commit of plain Lance; planes has hostile texts and no rows."""
    folder = applied_project(tmp_path / "project", SPECS, load)
    monkeypatch.chdir(folder)
    return folder


def test_the_page_says_what_there_is(lake: Path, deployer: Deployer) -> None:
    assert deployer("report", "--html", "lake.html").code == 0
    page = (lake / "lake.html").read_text(encoding="utf-8")
    found = parsed(page)
    text = " ".join("".join(found.text).split())
    for said in (
        "air.flights",
        "air.planes",
        "332 rows",
        "3 leaves",
        "delay_idx",
        "btree",
        "Drift 1 difference",
        "create index delay_idx: btree on delay",
        "not by deployer",
        "across leaves",
        "tier: gold",
        "ingest",
    ):
        assert said in text, said
    assert found.links <= found.ids
    assert found.tags.count("rect.leaf") + found.tags.count("rect.leaf hollow") == 3 + 1
    assert found.tags.count("rect.fragment loose") == 1
    assert found.tags.count("rect.event foreign") == 2  # rows, and the index
    assert found.tags.count("rect.event rows") == 2


def drift_card(project: Path) -> str:
    """The text of the page's drift section."""
    page = (project / "lake.html").read_text(encoding="utf-8")
    card = page[page.index('id="drift"') : page.index("</section>", page.index('id="drift"'))]
    return " ".join("".join(parsed(f"<p {card}</p>").text).split())


def nothing(_: Path) -> None:
    """Leaves the lake as it was applied."""


def rename_a_column(project: Path) -> None:
    [location] = (project / "lakes" / "demo" / "air").glob("flights-*.lance")
    lance.dataset(str(location)).alter_columns({"path": "delay", "name": "late"})


def set_a_hostile_tag(project: Path) -> None:
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        store.commit(entry.table_id, [SetTableProperties({"tags": {"x": HOSTILE}})], author=f"ann {HOSTILE}")


def put_a_dataset_beside(project: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), str(project / "lakes" / "demo" / "own.lance"))


def forget_the_stack(project: Path) -> None:
    shutil.rmtree(project / ".pulumi")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(nothing, ["Drift none", "Live state is what stack dev last applied."], id="none"),
        pytest.param(
            rename_a_column,
            ["Drift 1 difference", "table/air.flights", "rename column delay → late", "plain Lance", "version 2"],
            id="plain-lance",
        ),
        pytest.param(set_a_hostile_tag, ["tags none → x=", f"ann {HOSTILE}"], id="hostile"),
        pytest.param(
            put_a_dataset_beside,
            ["Not declared own.lance", "deployer import table/DATABASE.NAME"],
            id="undeclared",
        ),
        pytest.param(forget_the_stack, ["Drift unknown", "stack dev never applied anything"], id="unknown"),
    ],
)
def test_drift_is_told(project: Path, deployer: Deployer, change: Callable[[Path], None], said: Sequence[str]) -> None:
    assert deployer("up", "--yes").code == 0
    change(project)
    assert deployer("report", "--html", "lake.html").code == 0
    card = drift_card(project)
    for each in said:
        assert each in card, (each, card)


def a_version(number: int, hours: float) -> TableVersion:
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=hours * number)
    rows = None if number % 5 == 0 else number % 7
    return TableVersion(number, at, "append", "", "ingest", "ann", rows, number % 11 == 3)


@pytest.mark.parametrize(
    ("versions", "hours", "labels"),
    [
        (0, 1, []),
        (1, 1, ["2026-01-01 01:00 UTC"]),
        (8, 1, ["2026-01-01 01:00 UTC"]),
        (28, 0.5, ["2026-01-01 00:30 UTC", "04:30", "06:30", "08:30", "10:30", "12:30"]),
        (200, 12, ["2026-01-01 12:00 UTC", "2026-01-27", "2026-02-09", "2026-02-22", "2026-03-07", "2026-03-20"]),
        (450, 24, ["2026-09-09 00:00 UTC", "2026-10-31", "2026-11-26", "2026-12-22", "2027-01-17", "2027-02-12"]),
    ],
    ids=["none", "one", "few", "a-day", "two-hundred", "many"],
)
def test_history_is_a_timeline(versions: int, hours: float, labels: list[str]) -> None:
    drawn = timeline([a_version(number, hours) for number in range(versions, 0, -1)])
    assert len(drawn.bars) == min(versions, 200)
    assert drawn.dropped == max(versions - 200, 0)
    assert all(bar.left >= 0 and bar.left + bar.width <= 100 for bar in drawn.bars)
    assert [label.text for label in drawn.labels] == labels
    ends = [label.at + (22 if index == 0 else 11) for index, label in enumerate(drawn.labels)]  # at 640 px and above
    assert all(end <= following.at for end, following in zip(ends, drawn.labels[1:], strict=False))


def test_hostile_texts_are_shown_as_they_are(lake: Path, deployer: Deployer) -> None:
    deployer("report", "--html", "lake.html")
    page = (lake / "lake.html").read_text(encoding="utf-8")
    assert HOSTILE in " ".join("".join(parsed(page).text).split())
    assert "<script" not in page
    assert page.count("</style>") == page.count("</title>") - len(re.findall("<rect class", page)) == 1


def test_nothing_comes_from_elsewhere(lake: Path, deployer: Deployer) -> None:
    deployer("report", "--html", "lake.html")
    page = (lake / "lake.html").read_text(encoding="utf-8")
    assert not re.findall(r"https?://|url\(|@import", page)
    assert "default-src 'none'" in page


def test_leaves_and_fragments_lie_inside_the_key_space(lake: Path) -> None:
    [flights, _] = lake_report(str(lake / "lakes" / "demo"))
    assert isinstance(flights, TableReport)
    assert [leaf.rows for leaf, _ in flights.leaves] == [100, 50, 180]
    ends = [(span.start, span.end) for _, span in flights.leaves]
    assert ends[0][0] == 0
    assert ends[-1][1] == pytest.approx(1)
    assert all(first[1] == pytest.approx(second[0]) for first, second in pairwise(ends))
    for fragment in flights.fragments:
        assert fragment.span is not None
        assert 0 <= fragment.span.start < fragment.span.end <= 1 + 1e-9
    for bar in key_space(flights).bars:
        assert bar.left + bar.width <= 100.3


@pytest.mark.parametrize("rows", [[0], [5], [0, 0, 0], [1, 0, 1_000_000], [1] * 500], ids=str)
def test_leaves_fill_the_width(rows: list[int]) -> None:
    spans = leaf_spans(rows)
    assert spans[0].start == 0
    assert spans[-1].end == pytest.approx(1)
    assert all(span.end > span.start for span in spans)


def test_a_table_that_cannot_be_read_does_not_hide_the_others(lake: Path, deployer: Deployer) -> None:
    [location] = (lake / "lakes" / "demo" / "air").glob("planes-*.lance")
    shutil.rmtree(location)
    assert deployer("report", "--html", "lake.html").code == 0
    text = "".join(parsed((lake / "lake.html").read_text(encoding="utf-8")).text)
    assert "cannot be read" in text
    assert "332 rows" in text


def test_an_empty_lake_has_a_page(project: Path, deployer: Deployer) -> None:
    (project / "specs" / "flights.yaml").unlink()
    (project / "specs" / "planes.yaml").unlink()
    deployer("up", "--yes")
    assert deployer("report", "--html", "lake.html").code == 0
    assert "There are no tables." in (project / "lake.html").read_text(encoding="utf-8")


def test_no_lake_and_no_folder_are_said_in_words(project: Path, deployer: Deployer) -> None:
    assert deployer("report", "--html", "lake.html").code == 1
    deployer("up", "--yes")
    ran = deployer("report", "--html", "no/such/lake.html")
    assert (ran.code, "cannot be written" in ran.err) == (1, True)


def pixels(png: bytes) -> tuple[int, int, set[bytes]]:
    """Width, height and the colours of a PNG of 8-bit RGB or RGBA, of every row that needs no row above it."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8
    size = {2: 3, 6: 4}[kind]
    data, at = b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    raw, row = zlib.decompress(data), width * size + 1
    return width, height, {raw[start : start + row] for start in range(0, len(raw), row)}


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_draws_it(width: int, lake: Path, deployer: Deployer, tmp_path: Path) -> None:
    deployer("report", "--html", "lake.html")
    assert CHROMIUM is not None
    quiet = ("gpu", "quic", "background-networking", "component-update", "sync")
    picture = tmp_path / "page.png"
    command = [CHROMIUM, "--headless", "--no-sandbox", "--no-first-run", "--hide-scrollbars"]
    command += [f"--disable-{name}" for name in quiet]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1400", f"--screenshot={picture}"]
    subprocess.run([*command, (lake / "lake.html").as_uri()], check=True, capture_output=True, timeout=120)
    wide, tall, rows = pixels(picture.read_bytes())
    assert (wide, tall) == (width, 1400)
    assert len(rows) > 200  # an empty or broken page has a handful of different rows
