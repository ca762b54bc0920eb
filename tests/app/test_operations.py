"""The operations that commands and programs call: their results, what they report, and that they print nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from deployer import app
from deployer.app.workspace import open_workspace
from deployer.engine import Event, OnEvent, StepFinished
from deployer.errors import Interrupted, InvalidInput, InvalidSpecs, NotFound
from deployer.plan import Risk
from deployer.provider.urn import address_of
from deployer.tables.append import open_appender
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table


class Recorder(app.SilentReporter):
    """Keeps what a run reports."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.events: list[Event] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def steps(self) -> Iterator[OnEvent]:
        yield self.events.append


def yes(_: app.PlanResult) -> bool:
    return True


@pytest.fixture
def applied(project: Path) -> Path:
    app.apply(project, approve=yes)
    return project


def describe_flights(project: Path, text: str = "Flights") -> None:
    file = project / "specs" / "flights.yaml"
    file.write_text(file.read_text(encoding="utf-8") + f"description: {text}\n", encoding="utf-8")


def drop_delay(project: Path) -> None:
    """Fills the table, and removes a column from its spec."""
    with_rows = open_appender(str(project / "lakes" / "demo"), "air.flights")
    with_rows.append([{"id": 1, "delay": 2}])
    with_rows.close()
    file = project / "specs" / "flights.yaml"
    file.write_text(table("flights"), encoding="utf-8")


def test_every_name_is_exported() -> None:
    assert all(getattr(app, name).__doc__ for name in app.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'aply'"):
        app.aply  # noqa: B018


def test_a_plan_is_what_preview_prints(project: Path, deployer: Deployer) -> None:
    found = app.plan()
    assert found.to_json() == deployer("preview", "--json").json
    assert found.totals == {"create": 3, "update": 0, "delete": 0, "same": 0}
    assert (found.instance, found.risk, found.verdict, found.cost) == ("demo", Risk.SAFE, None, None)
    assert not (found.is_empty or found.is_refused or found.takes_away or found.unreadable)
    with pytest.raises(FrozenInstanceError):
        found.against = "main"  # type: ignore[misc]


def test_targets_limit_a_plan(project: Path) -> None:
    found = app.plan(targets=["table/air.flights"])
    assert [each.change.address for each in found.changes] == ["instance/demo", "table/air.flights"]


def test_apply_reports_and_prints_nothing(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    reporter, shown = Recorder(), list[app.PlanResult]()
    done = app.apply(str(project), approve=yes, on_plan=shown.append, reporter=reporter)
    finished = {address_of(each.urn) for each in reporter.events if isinstance(each, StepFinished)}
    assert {"instance/demo", "table/air.flights", "table/air.planes"} <= finished
    assert shown == [done.plan] and not done.unreadable and not done.old_datasets
    assert json.loads(json.dumps(done.to_json())).keys() == {"plan", "summary"}
    assert app.plan(project).is_empty
    assert capfd.readouterr() == ("", "")


def test_a_plan_that_is_not_approved_changes_nothing(project: Path) -> None:
    with pytest.raises(Interrupted, match="the plan was not approved; nothing was changed"):
        app.apply(approve=lambda _: False)
    assert not app.plan().is_empty


def test_an_empty_plan_needs_no_approval(applied: Path) -> None:
    assert app.apply(approve=lambda _: False).plan.is_empty


def test_a_refused_plan_is_an_error_with_the_plan(applied: Path, deployer: Deployer) -> None:
    drop_delay(applied)
    shown = list[app.PlanResult]()
    with pytest.raises(app.PlanRefused, match="1 change is refused; nothing was changed") as error:
        app.apply(approve=lambda _: pytest.fail("asked"), on_plan=shown.append)
    assert shown == [error.value.plan] and error.value.plan.risk is Risk.DESTROYS
    ran = deployer("up", "--yes", "--json")
    assert ran.code == error.value.exit_code and ran.json == error.value.document()


def test_a_plan_is_applied_once(applied: Path) -> None:
    describe_flights(applied)
    planned = app.plan()
    describe_flights(applied, "Flights and more")  # the plan is applied, and not what the specs say by now
    done = app.apply_plan(planned, approve=lambda _: pytest.fail("asked, and nothing is taken away"))
    assert [each.change.kind for each in done.plan.changes] == ["ChangeDescription"]
    with pytest.raises(app.PlanMoved) as error:
        app.apply_plan(planned)
    assert error.value.moved and error.value.document()["error"]["where"] is None


def test_a_plan_that_takes_away_asks(applied: Path) -> None:
    drop_delay(applied)
    planned = app.plan(allow_destroy=["table/air.flights"])
    with pytest.raises(Interrupted):
        app.apply_plan(planned, approve=lambda plan: not plan.takes_away)
    assert app.apply_plan(planned).plan.risk is Risk.DESTROYS


def test_a_saved_plan_moves(applied: Path, tmp_path: Path) -> None:
    describe_flights(applied)
    saved = app.save_plan(app.plan(), tmp_path / "a.plan").saved
    assert saved is not None
    app.apply_plan(saved.file, expect=saved.digest)
    with pytest.raises(app.PlanMoved, match=r"a\.plan: 2 things that the plan depends on changed since") as error:
        app.apply_plan(saved.file)
    assert error.value.file == saved.file and len(error.value.details()) == 2


def test_a_plan_against_a_ref_is_not_applied(project: Path) -> None:
    compared = app.PlanResult(app.plan().plan, open_workspace(project, "dev", None), against="main")
    assert compared.to_json()["against"] == "main"
    with pytest.raises(InvalidInput, match="against a Git ref cannot be saved or applied"):
        app.apply_plan(compared)


def test_drift_is_what_the_command_prints(applied: Path, deployer: Deployer) -> None:
    assert app.drift().is_empty
    assert deployer("service", "create", "air.flights", "COMPACT").code == 0
    found = app.drift()
    assert found.to_json() == deployer("drift", "--json").json and not found.is_empty
    written = app.drift(write_specs=True)
    assert written.written == ("specs/flights.yaml",) and written.taken_over and written.is_empty
    assert app.drift().is_empty


def test_drift_of_what_was_never_applied(project: Path) -> None:
    with pytest.raises(NotFound, match="stack dev never applied anything"):
        app.drift()


def test_imported_tables(applied: Path) -> None:
    (applied / "clients.csv").write_text("id,name\n1,Ada\n2,Grace\n", encoding="utf-8")
    done = app.import_table("table/air.clients", "clients.csv", row_keys=["id"])
    [client] = done.imported
    assert (client.rows, client.copied, client.managed, client.row_keys) == (2, True, False, ("id",))
    assert done.to_json()["failed"] == {} and app.plan().is_empty
    with pytest.raises(NotFound, match=r"there is no \*\.lance dataset"):
        app.import_tables(applied / "specs")


def test_rendered_specs_declare_the_same(project: Path, deployer: Deployer, tmp_path: Path) -> None:
    found = app.render()
    assert found.to_yaml() == deployer("render").out and found.to_json() == deployer("render", "--json").json
    (project / "specs" / "more.yaml").write_text("kind: Tabel\n", encoding="utf-8")
    with pytest.raises(InvalidSpecs) as error:
        app.render()
    assert error.value.document() == deployer("render", "--json").json


def test_valid_specs_are_what_validate_prints(project: Path, deployer: Deployer) -> None:
    (project / "specs" / "more").mkdir()
    (project / "specs" / "more" / "gates.yaml").write_text(table("gates"), encoding="utf-8")
    found = app.validate()
    assert found.to_json() == deployer("validate", "--json").json
    assert found.lake.instance.name == "demo" and found.unread == ("specs/more/gates.yaml",)
    (project / "specs" / "more.yaml").write_text("kind: Tabel\n", encoding="utf-8")
    with pytest.raises(InvalidSpecs) as error:
        app.validate()
    assert error.value.document() == deployer("validate", "--json").json


def test_the_graph_is_what_graph_prints(project: Path, deployer: Deployer) -> None:
    found = app.graph()
    assert list(found.graph.nodes) == ["instance/demo", "table/air.flights", "table/air.planes"]
    assert found.to_mermaid() == deployer("graph").out
    assert found.to_svg() == deployer("graph", "--format", "svg").out


def test_the_cost_of_a_lake_on_a_disk(project: Path, deployer: Deployer) -> None:
    found = app.cost()
    assert found.instance == "demo" and not found.estimate.lines
    assert found.to_json() == deployer("cost", "--json").json
    with pytest.raises(InvalidInput, match="--assume"):
        app.cost(assume=["never=4"])


def test_destroy_asks_and_deletes(applied: Path) -> None:
    with pytest.raises(Interrupted):
        app.destroy(approve=lambda plan: plan.is_empty)
    done = app.destroy(approve=yes)
    assert not done.is_empty and done.summary["delete"] >= 3 and done.to_json()["plan"]["counts"]["delete"] == 3
    assert app.plan().totals["create"] == 3


def test_another_project(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "other", {"demo.yaml": INSTANCE})
    assert app.plan(folder, "dev", folder / "specs").totals["create"] == 1
