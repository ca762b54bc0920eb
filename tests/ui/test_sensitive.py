"""Sensitive values are on no page and in no report; commands that read rows show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from deployer.cli.main import run as run_command
from deployer.live.reader import live_table
from deployer.plan.changes import ChangeColumnSensitive
from deployer.runs.records import end_queued_run, queue_run
from deployer.state import open_store
from deployer.tables.evolution.schema.apply import apply_column_change
from tests.projects import INSTANCE, applied_project, run, table
from tests.ui.conftest import Browser, served

SECRET, STREET, NOTE, LEAST = "SECRET-VALUE", "SECRET-STREET", "SECRET-NOTE", "SECRET-KEY"
PEOPLE = f"""
kind: Table
database: air
name: people
columns:
  - {{name: badge, type: string, nullable: false, sensitive: true}}
  - {{name: name, type: string}}
  - {{name: passport, type: string, sensitive: true}}
  - {{name: shouted, type: string, computed: {{sql: upper(passport), on_load: true}}}}
  - {{name: twice, type: string, computed: {{sql: "concat(shouted, '!')", on_load: true}}}}
  - name: home
    type: {{struct: [{{name: city, type: string}}, {{name: street, type: string, sensitive: true}}]}}
  - name: visits
    type: {{list: {{type: {{struct: [{{name: place, type: string}}, {{name: note, type: string, sensitive: true}}]}}}}}}
row_keys: [badge]
partitions: {{split_points: [{LEAST}-5, {LEAST}-7]}}
indexes:
  - {{name: names, columns: [name], kind: inverted}}
  - {{name: passports, columns: [passport], kind: inverted}}
"""
GUESTS = """
kind: View
database: air
name: guests
query: SELECT p.badge AS number, p.name AS who, p.passport || '?' AS document, p.home AS home FROM air.people p
row_keys: [number]
"""
SPECS = {"demo.yaml": INSTANCE, "people.yaml": PEOPLE, "guests.yaml": GUESTS, "plain.yaml": table("plain")}
SECRETS = (SECRET, STREET, NOTE, LEAST)
TOLD = [
    "/",
    "/table/air.people",
    "/table/air.people/rows",
    "/table/air.people/rows?where=name%20%3D%20%27Ada%27",
    "/table/air.people/rows?words=Ada",
    "/table/air.people/compare?one=1&two=2",
    "/table/air.guests",
    "/table/air.guests/rows",
    "/search?words=people",
    "/health",
    "/drift",
    "/cost",
]


def load() -> None:
    rows = [
        {
            "badge": f"{LEAST}-{number}",
            "name": "Ada" if number % 2 else "Grace",
            "passport": f"{SECRET}-{number}",
            "home": {"city": "Berlin", "street": STREET},
            "visits": [{"place": "Rome", "note": NOTE}],
        }
        for number in range(9)
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    run("ingest", "air.people", "rows.jsonl", "--engine", "driver")
    run("view", "refresh", "air.guests")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """air.people has nine rows with sensitive values, and air.guests is a view of them."""
    folder = applied_project(tmp_path / "project", SPECS, load)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def pages(people: Path) -> Iterator[Browser]:
    with served(people) as found:
        yield found


@pytest.mark.parametrize("path", TOLD)
def test_no_page_has_a_sensitive_value(pages: Browser, path: str) -> None:
    text = pages.ask(path)
    assert text.status == 200
    assert not [secret for secret in SECRETS if secret in text.text]


def test_rows_are_shown_without_sensitive_columns_and_fields(pages: Browser) -> None:
    text = pages.page("/table/air.people/rows").text
    assert "name home visits" in text
    assert "{'city': 'Berlin', 'street': 'hidden'}" in text and "[{'place': 'Rome', 'note': 'hidden'}]" in text
    assert "Sensitive values are hidden: badge passport shouted twice home visits" in text


def test_columns_of_a_view_that_are_made_of_sensitive_ones_are_hidden(pages: Browser) -> None:
    text = pages.page("/table/air.guests/rows").text
    assert "who Grace" in text or "who Ada" in text
    assert "Sensitive values are hidden: number document home" in text


def test_columns_and_key_space_say_what_is_hidden(pages: Browser) -> None:
    text = pages.page("/table/air.people").text
    assert "row key 1 sensitive" in text
    assert "keys from hidden to below hidden" in text


@pytest.mark.parametrize(
    "condition",
    ["passport%20%3D%20%27x%27", "%60PASSPORT%60%20%3D%20%27x%27", "home.street%20%3D%20%27x%27", "twice%20IS%20NULL"],
)
def test_conditions_on_sensitive_values_are_refused(pages: Browser, condition: str) -> None:
    page = pages.page(f"/table/air.people/rows?where={condition}", 400)
    assert "which has sensitive values" in page.text


def test_words_are_not_looked_for_in_sensitive_columns(pages: Browser) -> None:
    assert "There is no such row" in pages.page("/table/air.people/rows?words=secret").text
    assert "Ada" in pages.page("/table/air.people/rows?words=ada").text


def test_the_reason_of_a_failed_run_is_not_shown(pages: Browser, people: Path) -> None:
    with closing(open_store(str(people / "lakes" / "demo"))) as store:
        entry = next(each for each in store.instance().tables.values() if each.name == "people")
        queued = queue_run(store, entry.table_id, "COMPACT", cause="on demand", needs_service=False)
        end_queued_run(store, entry.table_id, queued.run_id, "FAILED", reason=f"row {SECRET} is not valid")
    text = pages.page("/table/air.people").text
    assert SECRET not in text and "the table has sensitive columns" in text


def test_the_report_has_no_sensitive_value(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("report", "--html", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "air.people" in page and "keys from hidden" in page
    assert not [secret for secret in SECRETS if secret in page]


def test_commands_that_read_rows_show_the_values(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run_command(["query", "air.people", "--json"]) == 0
    shown = capsys.readouterr().out
    assert SECRET in shown and STREET in shown and NOTE in shown


def test_a_column_that_is_sensitive_no_longer_is_shown(pages: Browser, people: Path) -> None:
    spec = people / "specs" / "people.yaml"
    spec.write_text(spec.read_text().replace("passport, type: string, sensitive: true", "passport, type: string"))
    run("up", "--yes")
    assert f"{SECRET}-1" in pages.page("/table/air.people/rows").text
    assert STREET not in pages.page("/table/air.people/rows").text


def test_drift_is_found_and_written_into_the_spec(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(open_store(str(people / "lakes" / "demo"))) as store:
        entry = next(each for each in store.instance().tables.values() if each.name == "people")
        spec = live_table(entry, store.table(entry.table_id)).spec
        change = ChangeColumnSensitive("table/air.people", ("home", "street"), True, False)
        apply_column_change(store, str(people / "lakes" / "demo"), entry.table_id, spec, change)
    assert run_command(["drift", "--write-spec"]) == 0
    assert "show the values of column home.street" in capsys.readouterr().out
    written = (people / "specs" / "people.yaml").read_text(encoding="utf-8")
    assert "{name: street, type: string}" in written and "{name: passport, type: string, sensitive: true}" in written
