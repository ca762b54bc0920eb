"""The pages in headless Chromium: by the keyboard alone, refreshed by htmx under the policy, and judged by axe.

`make build/axe/axe.min.js` brings axe-core from the npm registry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from deployer.runs.records import queue_run, start_run
from deployer.state import open_store
from tests.projects import REPOSITORY
from tests.ui.chromium import CHROMIUM, Tab, chromium
from tests.ui.conftest import Browser, served
from tests.ui.test_structure import WHOLE

pytestmark = [pytest.mark.full, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

AXE = REPOSITORY / "build" / "axe" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make build/axe/axe.min.js")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
FOCUS = """(() => { const at = document.activeElement, style = getComputedStyle(at); return {
    tag: at.tagName.toLowerCase(), text: at.textContent.trim(), href: at.getAttribute('href'),
    name: at.getAttribute('name'), outlined: style.outlineStyle !== 'none' } })()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


def address(browser: Browser, path: str) -> str:
    return f"http://127.0.0.1:{browser.port}{path}"


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", WHOLE)
def test_axe_finds_nothing(browser: Browser, tab: Tab, path: str, scheme: str) -> None:
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    tab.open(address(browser, path))
    assert_axe_finds_nothing(tab)


@needs_axe
@pytest.mark.parametrize("kind", ["plan", "drift", "cost"])
def test_results_are_made_at_the_press_of_a_key_and_axe_finds_nothing(
    browser: Browser, tab: Tab, project: Path, kind: str
) -> None:
    spec = project / "specs" / "flights.yaml"
    spec.write_text(spec.read_text().replace("row_keys", "  - {name: gate, type: string}\nrow_keys"), encoding="utf-8")
    tab.open(address(browser, f"/{kind}"))
    while tab.value(FOCUS)["text"] not in ("Plan now", "Look for drift now", "Estimate now"):
        tab.press("Tab")
    tab.press("Enter")
    tab.wait("document.querySelector('.result [role=status]').textContent.includes('As of')")
    assert kind != "plan" or "add column gate" in tab.value("document.querySelector('main').textContent")
    assert_axe_finds_nothing(tab)


@needs_axe
def test_axe_finds_nothing_where_runs_are_allowed(project: Path, tab: Tab) -> None:
    with served(project, allow_runs=True) as found:
        tab.open(address(found, "/table/air.flights"))
        assert "Queue COMPACT" in tab.value("document.querySelector('main').textContent")
        assert_axe_finds_nothing(tab)


def assert_axe_finds_nothing(tab: Tab) -> None:
    tab.value(AXE.read_text(encoding="utf-8"))
    run = f"axe.run({{runOnly: {json.dumps(RULES)}}})"
    found = tab.value(
        f"{run}.then(all => ({{passed: all.passes.length, rules: all.passes.map(each => each.id),"
        "violations: all.violations.map(each => [each.id, each.nodes.map(node => node.html)])}))"
    )
    assert found["violations"] == []
    assert "color-contrast" in found["rules"] and found["passed"] > 10


def test_the_keyboard_reaches_everything_in_order(browser: Browser, tab: Tab) -> None:
    tab.open(address(browser, "/table/air.flights"))
    expected = tab.value(
        "[...document.querySelectorAll('a[href], button, input:not([type=hidden]):not([type=radio]), summary')].length"
    )
    seen: list[dict[str, Any]] = []
    tab.press("Tab")
    first = tab.value(FOCUS)
    assert (first["href"], first["text"]) == ("#main", "Skip to the content")
    while not seen or tab.value("document.activeElement !== document.body"):
        at = tab.value(FOCUS)
        assert at["outlined"], at
        seen.append(at)
        tab.press("Tab")
    reached = [each for each in seen if each["tag"] != "div" and each["name"] not in ("one", "two")]
    assert len(reached) == expected
    assert {each["name"] for each in seen} >= {"words", "one", "two"}


def test_versions_are_compared_and_tables_found_by_keys_alone(browser: Browser, tab: Tab) -> None:
    tab.open(address(browser, "/"))
    tab.press("Tab")
    tab.press("Enter")
    tab.wait("location.hash === '#main'")
    while tab.value(FOCUS)["href"] != "/table/air.flights":
        tab.press("Tab")
    tab.press("Enter")
    tab.wait("document.readyState === 'complete' && document.title.startsWith('air.flights')")
    while tab.value(FOCUS)["name"] != "one":
        tab.press("Tab")
    tab.press("ArrowDown")
    while tab.value(FOCUS)["text"] != "Compare the two versions":
        tab.press("Tab")
    tab.press("Enter")
    tab.wait("document.readyState === 'complete' && document.body.textContent.includes('0 → 60')")
    while tab.value(FOCUS)["name"] != "words":
        tab.press("Tab")
    tab.type("remark")
    tab.press("Enter")
    tab.wait("document.readyState === 'complete' && document.title.startsWith('Search')")
    assert "air.flights" in tab.value("document.querySelector('main').textContent")


def test_a_table_shows_the_progress_of_a_run_while_it_runs(browser: Browser, tab: Tab, project: Path) -> None:
    tab.open(address(browser, "/table/air.flights"))
    assert "running" not in tab.value("document.querySelector('.runs-part').textContent")
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        table_id = browser.view.open("air.flights").entry.table_id
        queued = queue_run(store, table_id, "COMPACT", cause="on demand")
        held = start_run(store, table_id, queued.run_id)
        for done in (10, 40):
            held.renew({"doing": "writing", "done": done, "total": 60, "unit": "rows"})
            said = f"writing: {done} of 60 rows"
            tab.wait(f"document.querySelector('.runs-part').textContent.includes({json.dumps(said)})")
        assert tab.value("document.querySelector('progress').value") == 66
        held.finish("SUCCEEDED")
    tab.wait("document.querySelector('.runs-part').textContent.includes('succeeded')")


def test_health_refreshes_itself(browser: Browser, tab: Tab, project: Path) -> None:
    tab.open(address(browser, "/health"))
    assert "writing" not in tab.value("document.querySelector('main').textContent")
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        table_id = browser.view.open("air.flights").entry.table_id
        held = start_run(store, table_id, queue_run(store, table_id, "COMPACT", cause="on demand").run_id)
        held.renew({"doing": "writing", "done": 3, "total": 60, "unit": "rows"})
        tab.wait("document.querySelector('main').textContent.includes('writing: 3 of 60 rows')")


def test_a_search_shows_the_first_rows_of_the_tables_that_it_finds(browser: Browser, tab: Tab) -> None:
    tab.open(address(browser, "/search?words=air"))
    tab.wait("document.querySelectorAll('.preview').length === 2")
    text = tab.value("document.querySelector('main').textContent")
    assert "alert(1)" in text and "It has no rows." in text
    assert tab.value("[...document.scripts].length") == 1
