"""Services as a user has them: declared, previewed, applied, and left as they are by what runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from deployer.runs.records import queue_run, start_run
from deployer.services.api.attachments import pause_service
from deployer.state import open_store
from deployer.state.model.services import Service
from deployer.state.store import StateStore
from tests.cli.conftest import Deployer
from tests.cli.test_apply import edit
from tests.projects import table

SERVICES = """services:
  compact:
    trigger: {schedule: "0 3 * * *", timezone: Europe/Berlin}
    options: {target_file_bytes: 128MB}
  clean: {trigger: {commits: 100}, options: {older_than: 36h, keep_versions: 10}}
"""


@pytest.fixture
def declared(project: Path) -> Path:
    text = table("flights", "delay: int32", more=SERVICES)
    (project / "specs" / "flights.yaml").write_text(text, encoding="utf-8")
    return project


@contextmanager
def opened(project: Path) -> Iterator[tuple[StateStore, str]]:
    """The state store and the table's id."""
    with closing(open_store(str(project / "lakes" / "demo"))) as store:
        entry = store.instance().by_name("air.flights")
        assert entry is not None
        yield store, entry.table_id


def service(project: Path, kind: str) -> Service | None:
    with opened(project) as (store, table_id):
        return next((each for each in store.table(table_id).services.values() if each.kind == kind), None)


def changes(deployer: Deployer) -> list[tuple[str, str, str]]:
    found = deployer("preview", "--json").json["resources"]
    return [(each["kind"], each["summary"], each["cause"]) for resource in found for each in resource["changes"]]


def test_services_come_with_their_table(declared: Path, deployer: Deployer) -> None:
    assert "services compact, clean" in deployer("preview").out
    assert deployer("up", "--yes").code == 0
    compact = service(declared, "COMPACT")
    assert compact is not None
    assert compact == Service(
        "COMPACT",
        "AUTOMATIC",
        {"schedule": "0 3 * * *", "timezone": "Europe/Berlin"},
        {"target_file_bytes": 128_000_000},
        declared=True,
    )
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0


def test_changed_services_are_previewed_with_their_lines_and_applied(declared: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    file = declared / "specs" / "flights.yaml"
    edit(file, "Europe/Berlin", "Asia/Tokyo")
    edit(file, "128MB", "256MiB")
    edit(file, "  clean: {trigger: {commits: 100}, options: {older_than: 36h, keep_versions: 10}}\n", "")
    edit(file, "services:\n", "services:\n  autosavepoint: {}\n")
    lines = file.read_text(encoding="utf-8").splitlines()
    line = {word: next(number for number, each in enumerate(lines, 1) if word in each) for word in ("Asia", "256MiB")}
    assert changes(deployer) == [
        ("DeleteService", "delete service clean", f"specs/flights.yaml:{lines.index('services:') + 1}:1"),
        (
            "ChangeTrigger",
            "trigger of service compact: at 0 3 * * * Europe/Berlin → at 0 3 * * * Asia/Tokyo",
            f"specs/flights.yaml:{line['Asia']}:5",
        ),
        (
            "ChangeServiceOptions",
            "options of service compact: target_file_bytes 128MB → 256MiB",
            f"specs/flights.yaml:{line['256MiB']}:15",
        ),
        (
            "CreateService",
            "create service autosavepoint: at 0 0 * * * UTC",
            f"specs/flights.yaml:{lines.index('  autosavepoint: {}') + 1}:3",
        ),
    ]
    assert deployer("up", "--yes").code == 0
    assert service(declared, "CLEAN") is None
    compact = service(declared, "COMPACT")
    assert compact is not None
    assert compact.options == {"target_file_bytes": 2**28}
    assert deployer("preview", "--exit-code").code == 0


def test_what_services_do_is_no_difference(declared: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    with opened(declared) as (store, table_id):
        run = queue_run(store, table_id, "COMPACT", cause="on demand")
        start_run(store, table_id, run.run_id).finish(reason="done")
        pause_service(store, table_id, "CLEAN")
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("drift").code == 0
    edit(declared / "specs" / "flights.yaml", "commits: 100", "commits: 50")
    assert deployer("up", "--yes").code == 0
    clean = service(declared, "CLEAN")
    assert clean is not None
    assert clean.paused
    assert clean.trigger == {"commits": 50}


def test_a_service_that_runs_is_not_detached(declared: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    with opened(declared) as (store, table_id):
        run = queue_run(store, table_id, "CLEAN", cause="on demand")
        held = start_run(store, table_id, run.run_id)
        lines = (declared / "specs" / "flights.yaml").read_text(encoding="utf-8").splitlines(keepends=True)
        kept = "".join(each for each in lines if not each.startswith("  clean:"))
        (declared / "specs" / "flights.yaml").write_text(kept, encoding="utf-8")
        ran = deployer("up", "--yes")
        assert ran.code != 0
        assert "of CLEAN is RUNNING" in ran.err + ran.out
        held.finish()
    assert deployer("up", "--yes").code == 0
    assert service(declared, "CLEAN") is None


def test_services_of_the_instance_are_those_of_each_table(project: Path, deployer: Deployer) -> None:
    instance = project / "specs" / "demo.yaml"
    with instance.open("a", encoding="utf-8") as file:
        file.write("services: {compact: {}}\n")
    assert "services compact" in deployer("preview").out
    assert deployer("up", "--yes").code == 0
    assert service(project, "COMPACT") is not None
    edit(instance, "compact: {}", "compact: {trigger: {commits: 7}}")
    assert [(kind, cause) for kind, _, cause in changes(deployer)] == [("ChangeTrigger", "specs/demo.yaml:5:22")] * 2


def test_unchecked_options_are_marked_in_the_plan(project: Path, deployer: Deployer) -> None:
    raw = "services: {clean: {unsafe_raw: true, options: {brand_new: 'on'}}}\n"
    text = table("flights", "delay: int32", more=raw)
    (project / "specs" / "flights.yaml").write_text(text, encoding="utf-8")
    assert "services clean (options unchecked)" in deployer("preview").out
    assert deployer("up", "--yes").code == 0
    found = service(project, "CLEAN")
    assert found is not None
    assert (found.unsafe_raw, found.options) == (True, {"brand_new": "on"})
    assert deployer("preview", "--exit-code").code == 0


def test_clean_is_run_by_hand(declared: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    ran = deployer("service", "run", "air.flights", "CLEAN", "-o", "dry_run=true")
    assert (ran.code, ran.out.split(":")[:2]) == (0, ["air.flights", " nothing to do"])
    bad = deployer("service", "run", "air.flights", "CLEAN", "-o", "older=1d")
    assert bad.code == 1 and "older" in bad.err
