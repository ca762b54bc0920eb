"""What the pages of a lake show: all that there is, escaped, and nothing is written for it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.projects import run
from tests.ui.conftest import HOSTILE, OF_A_CLIENT, Browser

PAGES = (
    "/",
    "/?words=flights",
    "/table/air.flights",
    "/table/air.planes",
    "/table/air.flights/compare?one=1&two=3",
    "/table/air.flights/rows",
    "/table/air.flights/rows?where=id%20%3C%205",
    "/datasets",
    "/datasets?words=drives",
    "/dataset/drives",
    "/dataset/drives?words=drive&from=1",
    f"/dataset/{quote(OF_A_CLIENT)}",
    "/dataset-runs/drives",
    "/health",
    "/health/part",
    "/search?words=remark",
    "/plan",
    "/drift",
    "/cost",
)


def test_the_tables_have_sizes_and_rows(browser: Browser) -> None:
    text = browser.page("/").text
    assert "Tables 2" in text and "Rows 60" in text
    assert "air.flights 60" in text and "air.planes 0" in text


def test_tables_are_found_by_name(browser: Browser) -> None:
    text = browser.page("/?words=PLANE").text
    assert "air.planes" in text and "air.flights" not in text
    assert "No table has that in its name" in browser.page("/?words=nothing").text


def test_a_table_has_columns_history_and_services(browser: Browser) -> None:
    text = browser.page("/table/air.flights").text
    for said in ("remark string yes", "row key 1", "History", "ingest", "+30", "compact", "2 fragments"):
        assert said.lower() in text.lower(), said


def test_versions_are_compared(browser: Browser, project: Path) -> None:
    spec = project / "specs" / "flights.yaml"
    spec.write_text(spec.read_text().replace("row_keys", "  - {name: gate, type: string}\nrow_keys"), encoding="utf-8")
    run("up", "--yes")
    newest = browser.view.open("air.flights").state.lance_version
    text = browser.page(f"/table/air.flights/compare?one={newest}&two=1").text
    assert "0 → 60" in text
    assert "gate not there string" in text


def test_a_comparison_of_an_unknown_version_names_it(browser: Browser) -> None:
    assert "has no version '99'" in browser.page("/table/air.flights/compare?one=1&two=99", 400).text
    assert "has no version ''" in browser.page("/table/air.flights/compare", 400).text


def test_rows_are_limited_and_conditions_hold(browser: Browser) -> None:
    assert "The first 20 rows; there are more" in browser.page("/table/air.flights/rows").text
    page = browser.page("/table/air.flights/rows?where=id%20%3D%20103").text
    assert "103" in page and "there are more" not in page
    assert "There is no such row" in browser.page("/table/air.planes/rows").text


@pytest.mark.parametrize("query", ["where=no_such%20%3D%201", "where=id%3B%20DROP", "words=x", "words=x&where=id%3D1"])
def test_a_wrong_condition_is_named_on_the_page(browser: Browser, query: str) -> None:
    page = browser.ask(f"/table/air.flights/rows?{query}")
    assert page.status == 400
    assert 'role="alert"' in page.text


def test_search_finds_tables_by_column(browser: Browser) -> None:
    text = browser.page("/search?words=remark").text
    assert "air.flights" in text and "air.planes" not in text


def test_health_says_that_all_is_well(browser: Browser) -> None:
    assert "1 service of 2 tables" in browser.page("/health").text
    assert "1 service of 2 tables" in browser.page("/health/part").text


def test_health_names_what_is_not_well(browser: Browser, project: Path) -> None:
    [dataset] = (project / "lakes" / "demo" / "air").glob("planes-*.lance")
    dataset.rename(dataset.with_suffix(".gone"))
    assert "air.planes unreadable" in browser.page("/health").text
    assert "air.planes cannot be read" in browser.page("/").text
    assert "air.flights" in browser.page("/").text


@pytest.mark.parametrize("path", PAGES)
def test_what_others_wrote_is_text(browser: Browser, path: str) -> None:
    page = browser.ask(path)
    assert page.status == 200
    assert "<script>alert" not in page.text
    browser.page(path)  # it nests, and has no inline script or style


def test_hostile_values_are_shown_as_they_are(browser: Browser) -> None:
    assert HOSTILE in browser.page("/table/air.flights/rows").text
    assert HOSTILE in browser.page("/table/air.planes").text


def test_reading_writes_nothing(browser: Browser, project: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in sorted(project.rglob("*")) if file.is_file()}

    before = contents()
    for path in PAGES:
        assert browser.ask(path).status == 200
    assert contents() == before


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/nothing", "This page does not exist"),
        ("/table/air.flihgts", "did you mean 'air.flights'"),
        ("/dataset/drivse", "did you mean 'drives'"),
        ("/dataset/%3Cscript%3E", "there is no dataset"),
        ("/dataset-runs/none", "there is no dataset"),
        ("/static/nothing.js", "This page does not exist"),
        ("/static/..%2Fpages.py", "This page does not exist"),
        ("/table/%3Cscript%3E", "there is no table"),
    ],
)
def test_unknown_paths_are_named(browser: Browser, path: str, said: str) -> None:
    assert said in browser.page(path, 404).text


def test_styles_and_the_script_are_served(browser: Browser) -> None:
    assert ".drawing" in browser.ask("/static/page.css").text
    assert browser.ask("/static/htmx.min.js").headers["content-type"].startswith("text/javascript")


def test_a_report_is_made_once_for_each_version(browser: Browser) -> None:
    import datetime as dt

    def report() -> object:
        return browser.view.table("air.flights", dt.datetime.now(dt.UTC)).report

    first = report()
    assert report() is first
    run("ingest", "air.flights", "0.csv", "--engine", "driver", "--job-id", "again")
    assert report() is not first
