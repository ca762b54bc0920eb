"""Every rendering of every golden case; hostile texts stay texts, and a comment never grows over GitHub's limit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.live.model import LiveLake, TableStatistics
from deployer.plan import Foreign, Plan, make_plan
from deployer.plan.render.escaping import markdown_code, markdown_text, plain
from deployer.plan.render.html import plan_as_html
from deployer.plan.render.json_form import plan_as_json
from deployer.plan.render.markdown import COMMENT_LIMIT, plan_as_markdown
from deployer.plan.targeting.targets import Targets
from deployer.specs.model import TableSpec
from deployer.specs.types.types import Column, Scalar
from tests.plan.lakes import EMPTY, FLIGHTS, INSTANCE, LIVE, OWNER, graph
from tests.plan.test_diff import INSTANCES, TABLES

GOLDEN = Path(__file__).parent / "golden" / "render"
HOSTILE = (
    "a|b `c` ``d`` <img src=x onerror=alert(1)> @everyone #12 </details> "
    "[x](javascript:x) \n# big \u202e ]]> {{7*7}} $x$"
)
VOID = {"meta", "link", "br", "img", "hr", "input"}


TARGETS = Targets(("table/air.*", "table/<b>"), frozenset(), "instance/demo", 12, 3)


def plan_of(*tables: TableSpec, live: LiveLake = LIVE, **more: object) -> Plan:
    return make_plan("demo", graph(*tables), live, owner=OWNER, **more)  # type: ignore[arg-type]


def many(number: int, changed: Callable[[TableSpec], TableSpec]) -> Plan:
    """A plan that does the same to so many tables."""
    specs = [replace(FLIGHTS, name=f"flights_{index:03}") for index in range(number)]
    model = LIVE.tables[FLIGHTS.address]
    live = {spec.address: replace(model, spec=spec) for spec in specs}
    return plan_of(*(changed(spec) for spec in specs), live=LiveLake(INSTANCE, live))


def unknown_sizes() -> LiveLake:
    tables = {key: replace(table, statistics=TableStatistics(known=False)) for key, table in LIVE.tables.items()}
    return replace(LIVE, tables=tables)


def hostile() -> Plan:
    spec = TableSpec("air", HOSTILE, (Column(HOSTILE, Scalar("int32")),), description=HOSTILE, tags={HOSTILE: HOSTILE})
    model = LIVE.tables[FLIGHTS.address]
    live = LiveLake(INSTANCE, {spec.address: replace(model, spec=spec)})
    after = replace(
        spec, columns=(Column("b", Scalar("int32"), description=HOSTILE),), description=HOSTILE[::-1], tags={}
    )
    return plan_of(after, live=live, foreign=[Foreign(HOSTILE, HOSTILE, HOSTILE)])


CASES: dict[str, Callable[[], Plan]] = {
    **{name: lambda spec=spec: plan_of(spec, EMPTY) for name, spec in TABLES.items()},  # type: ignore[misc]
    **{
        name: lambda spec=spec: make_plan("demo", graph(FLIGHTS, EMPTY, instance=spec), LIVE, owner=OWNER)  # type: ignore[misc]
        for name, spec in INSTANCES.items()
    },
    "everything_new": lambda: plan_of(FLIGHTS, EMPTY, live=LiveLake(None)),
    "everything_deleted": lambda: plan_of(),
    "deletion_allowed": lambda: plan_of(EMPTY, allow_destroy=[FLIGHTS.address]),
    "foreign_only": lambda: plan_of(FLIGHTS, EMPTY, foreign=[Foreign("aws:s3/bucket:Bucket logs", "replace", "name")]),
    "sizes_unknown": lambda: plan_of(TABLES["much_at_once"], live=unknown_sizes()),
    "targeted": lambda: replace(plan_of(EMPTY), targets=TARGETS),
    "targeted_and_nothing_to_do": lambda: replace(plan_of(FLIGHTS, EMPTY), targets=replace(TARGETS, needed="")),
    "hostile": hostile,
}


@pytest.mark.parametrize("name", CASES)
def test_every_rendering_is_as_its_golden_file_says(name: str, update_golden: bool) -> None:
    plan = CASES[name]()
    page = plan_as_html(plan)
    document = json.dumps(plan_as_json(plan), indent=1, ensure_ascii=False)
    parts = {
        "markdown": plan_as_markdown(plan),
        "html": page[page.index("<main>") : page.index("</body>")],
        "json": document,
    }
    text = "".join(f"===== {form}\n{rendered}\n" for form, rendered in parts.items())
    file = GOLDEN / f"{name}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


LONG: dict[str, tuple[Callable[[TableSpec], TableSpec], int, int, str]] = {
    # name: (change, tables that fit in full, tables at the limit, what the cut says)
    "safe": (lambda spec: replace(spec, description="x" * 300, tags={"a": "b" * 300}), 20, 500, ""),
    "risky": (lambda spec: replace(spec, row_keys=("carrier",)), 20, 500, "more risky changes or resources, not shown"),
    "both": (
        lambda spec: replace(spec, row_keys=("carrier",), description="new"),
        20,
        500,
        "more resources with safe changes, not shown",
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_plan_is_folded_then_cut_and_says_so(name: str, update_golden: bool) -> None:
    changed, few, lots, said = LONG[name]
    short = plan_as_markdown(many(few, changed))
    assert "not shown here" not in short
    assert short.count("`table/air.flights_") >= few
    text = plan_as_markdown(many(lots, changed))
    assert len(text.encode()) <= COMMENT_LIMIT
    assert f"{lots:,} to update" in text.splitlines()[0]
    assert said in text
    file = GOLDEN / f"limit_{name}.md"
    if update_golden:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("limit", [1_000, 5_000, 20_000])
def test_any_limit_is_kept_and_nothing_is_left_open(limit: int) -> None:
    text = plan_as_markdown(many(200, LONG["both"][0]), limit)
    assert len(text.encode()) <= limit
    assert text.count("<details>") == text.count("</details>")


class Page(HTMLParser):
    """Refuses pages whose elements do not nest, that run something or that fetch something."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "img", "iframe", "object", "embed", "link", "base", "form")
        for name, value in attrs:
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "background", "action")
            assert name != "href" or (value or "").startswith("#")
        if tag not in VOID:
            self.open.append(tag)

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


@pytest.mark.parametrize("name", CASES)
def test_pages_are_whole_run_nothing_and_fetch_nothing(name: str) -> None:
    page = plan_as_html(CASES[name]())
    parsed(page)
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_texts_are_shown_as_they_are_on_the_page() -> None:
    text = " ".join("".join(parsed(plan_as_html(hostile())).text).split())
    assert "<img src=x onerror=alert(1)>" in text
    assert "{{7*7}}" in text


def test_hostile_texts_do_nothing_in_markdown() -> None:
    text = plan_as_markdown(hostile())
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<img" not in outside
    assert not re.search(r"@\w", outside)
    assert not re.search(r"#\d", outside)
    assert outside.count("</details>") == outside.count("<details>") == 1
    assert not re.search(r"(?<!\\)\[x\]", outside)
    assert "\u202e" not in text


def test_a_page_of_many_tables_has_them_all() -> None:
    page = plan_as_html(many(500, LONG["both"][0]))
    parsed(page)
    assert page.count("<section") == 1 + 2 * 500


@given(st.text())
def test_code_spans_end_where_they_should(text: str) -> None:
    code = markdown_code(text)
    fence = re.match(r"`*", code)
    assert fence is not None
    if code:
        inner = code[len(fence[0]) : -len(fence[0])]
        assert len(fence[0]) not in {len(run) for run in re.findall(r"`+", inner)}
        assert inner.strip() == plain(text).replace("|", "\u00a6").strip()


@given(st.text())
def test_prose_has_no_live_character(text: str) -> None:
    safe = markdown_text(text)
    assert "\n" not in safe
    assert not re.search(r"[<>]|@\w|#\d", safe)
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]|]", safe)
