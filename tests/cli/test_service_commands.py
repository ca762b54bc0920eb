"""`deployer service`: what people do to services by hand, and what they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.projects import table

TABLE = "air.flights"


def test_a_service_is_attached_listed_and_written_into_the_spec(applied: Path, deployer: Deployer) -> None:
    assert "there are no services" in deployer("service", "list").err
    ran = deployer("service", "create", TABLE, "compact", "-o", "commits=100", "-o", "min_files=3")
    assert (ran.code, ran.out) == (0, "air.flights: COMPACT is attached\n")
    assert "--write-spec" in ran.err
    assert deployer("drift").code == 2
    assert "after 100 commits" in deployer("service", "list").out
    ran = deployer("service", "alter", TABLE, "compact", "-o", "rows=500", "--write-spec")
    assert ran.out == "air.flights: COMPACT is changed\nedited specs/flights.yaml\n"
    text = (applied / "specs" / "flights.yaml").read_text(encoding="utf-8")
    assert "rows: 500" in text and "min_files: 3" in text and "commits" not in text
    assert deployer("drift").code == 0
    assert deployer("preview", "--exit-code").code == 0
    described = deployer("service", "describe", TABLE, "compact", "--json").json
    assert described["trigger"] == {"rows": 500} and described["options"]["target_file_bytes"] == 256_000_000
    assert deployer("service", "delete", TABLE, "compact").out == "air.flights: COMPACT is detached\n"
    assert "Plan: 1 to update" in deployer("preview").out


def test_a_paused_service_does_not_run_and_leaves_no_run_behind(applied: Path, deployer: Deployer) -> None:
    deployer("service", "create", TABLE, "compact")
    assert deployer("service", "pause", TABLE, "compact").code == 0
    ran = deployer("service", "run", TABLE, "compact")
    assert ran.code == 1 and "the COMPACT service is paused" in ran.err
    again = deployer("service", "pause", TABLE, "compact")
    assert again.code == 3 and "paused already" in again.err
    assert deployer("service", "runs", TABLE, "--json").json["runs"] == []
    assert deployer("service", "resume", TABLE, "compact").code == 0
    assert deployer("service", "run", TABLE, "compact").code == 0
    statuses = [each["status"] for each in deployer("service", "runs", TABLE, "--json").json["runs"]]
    assert statuses == ["SKIPPED"]
    assert "COMPACT   SKIPPED" in deployer("service", "runs", TABLE).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", TABLE, "compakt"), "unknown service `compakt`; did you mean COMPACT"),
        (("create", TABLE, "restore"), "RESTORE runs on demand only"),
        (("create", "air.flihgts", "compact"), "air.flights"),
        (("create", TABLE, "compact", "-o", "x"), "'x' is not NAME=VALUE; write NAME=VALUE"),
        (("create", TABLE, "compact", "-o", "strategy=sise"), "did you mean size?"),
        (("create", TABLE, "compact", "--trigger-mode", "auto"), "unknown trigger mode `auto`; did you mean AUTOMATIC"),
        (("create", TABLE, "compact", "--cluster", "big"), "unknown cluster `big`"),
        (("alter", TABLE, "clean", "-o", "commits=3"), "the table has no CLEAN service"),
        (("describe", TABLE, "clean"), "the table has no CLEAN service"),
        (("cancel", TABLE, "clean"), "no run of CLEAN is queued or running"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], said: str, applied: Path, deployer: Deployer) -> None:
    ran = deployer("service", *arguments)
    assert ran.code == 1 and said in ran.err
    assert "there are no services" in deployer("service", "list").err


def test_a_load_runs_what_is_due_unless_told_not_to(project: Path, deployer: Deployer) -> None:
    declared = "services:\n  compact: {trigger: {commits: 3}}\n"
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=declared), encoding="utf-8")
    (project / "rows.csv").write_text("id,delay\n1,5\n2,6\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    for _ in range(2):
        assert "COMPACT" not in deployer("ingest", TABLE, "rows.csv").err
    assert deployer("ingest", TABLE, "rows.csv", "--no-services").code == 0
    assert deployer("service", "runs", TABLE, "--json").json["runs"] == []
    ran = deployer("ingest", TABLE, "rows.csv")
    assert ran.code == 0 and "COMPACT is due: 4 commits" in ran.err
    assert "air.flights: 4 → 1 file" in ran.out
    done = deployer("ingest", TABLE, "rows.csv", "--json").json
    assert done["rows"] == 2 and done["services"] == []
    [run] = deployer("service", "runs", TABLE, "--json").json["runs"]
    assert (run["status"], run["cause"]) == ("SUCCEEDED", "trigger: 4 commits")
    assert deployer("preview", "--exit-code").code == 0


def test_a_declared_service_runs_on_its_own_cluster(project: Path, deployer: Deployer) -> None:
    declared = "services:\n  compact: {cluster: nightly, trigger_mode: ON_DEMAND}\n"
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=declared), encoding="utf-8")
    instance = project / "specs" / "demo.yaml"
    clusters = "clusters:\n  nightly: {kind: local, cores: 1}\n  other: {kind: local}\n"
    instance.write_text(instance.read_text(encoding="utf-8") + clusters, encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert deployer("service", "run", TABLE, "compact").code == 0  # which of two is not asked
    [run] = deployer("service", "runs", TABLE, "--json").json["runs"]
    assert run["cluster"] == "nightly"


def test_all_services_move_at_once_and_drift_shows_it(project: Path, deployer: Deployer) -> None:
    declared = "services:\n  compact: {cluster: nightly, trigger_mode: ON_DEMAND}\n"
    spec = project / "specs" / "flights.yaml"
    spec.write_text(table("flights", "delay: int32", more=declared), encoding="utf-8")
    instance = project / "specs" / "demo.yaml"
    clusters = "clusters:\n  nightly: {kind: local, cores: 1}\n  other: {kind: local}\n"
    instance.write_text(instance.read_text(encoding="utf-8") + clusters, encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    wrong = deployer("service", "move", TABLE, "--cluster", "elsewhere")
    assert wrong.code == 1 and "unknown cluster `elsewhere`; the instance declares nightly, other" in wrong.err
    assert deployer("drift").code == 0
    moved = deployer("service", "move", TABLE, "--cluster", "other")
    assert moved.out == f"{TABLE}: on cluster other: COMPACT; services that are attached later run there too\n"
    assert "--write-spec" in moved.err
    assert "move all services to cluster other" in deployer("state", "log", TABLE).out
    [item] = deployer("drift", "--json").json["drift"]
    assert item["kind"] == "MoveServiceToCluster" and item["who"]
    assert "cluster of service compact: other → nightly" in deployer("preview").out
    deployer("service", "create", TABLE, "clean", "--trigger-mode", "on_demand", "-o", "older_than=3d")
    assert "set service CLEAN: ON_DEMAND, on other; options: older_than = 3d" in deployer("state", "log", TABLE).out
    as_json = deployer("service", "move", TABLE, "--cluster", "other", "--write-spec", "--json").json
    assert (as_json["services"], as_json["written"]) == (["CLEAN", "COMPACT"], ["specs/flights.yaml"])
    assert "cluster: other" in spec.read_text(encoding="utf-8") and deployer("drift").code == 0
    spec.write_text(table("flights", "delay: int32", more=declared), encoding="utf-8")
    assert deployer("up", "--yes").code == 0  # what specs declare wins
    [service] = deployer("service", "list", "--json").json["services"]
    assert (service["service"], service["cluster"]) == ("COMPACT", "nightly")


def test_a_move_is_undone(project: Path, deployer: Deployer) -> None:
    declared = "services:\n  compact: {cluster: nightly, trigger_mode: ON_DEMAND}\n"
    (project / "specs" / "flights.yaml").write_text(table("flights", "delay: int32", more=declared), encoding="utf-8")
    instance = project / "specs" / "demo.yaml"
    clusters = "clusters:\n  nightly: {kind: local, cores: 1}\n  other: {kind: local}\n"
    instance.write_text(instance.read_text(encoding="utf-8") + clusters, encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    deployer("service", "create", TABLE, "clean", "--trigger-mode", "on_demand")
    assert deployer("service", "move", TABLE, "--cluster", "other").code == 0
    undone = deployer("service", "move", TABLE, "--reset")
    assert undone.out == (
        f"{TABLE}: CLEAN on the default cluster, COMPACT on nightly; "
        "services that are attached later run on the default cluster\n"
    )
    drift = deployer("drift", "--json").json["drift"]
    assert [each["summary"] for each in drift] == ["create service clean: on demand"]  # which nobody declares
    log = deployer("state", "log", TABLE).out
    assert deployer("service", "move", TABLE, "--reset", "--json").json["services"] == {
        "CLEAN": None,
        "COMPACT": "nightly",
    }
    assert deployer("state", "log", TABLE).out == log  # there was nothing to undo any more
    deployer("service", "delete", TABLE, "clean")
    deployer("service", "create", TABLE, "metasync", "--trigger-mode", "on_demand")
    on = {each["service"]: each["cluster"] for each in deployer("service", "list", "--json").json["services"]}
    assert on == {"COMPACT": "nightly", "METASYNC": None}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "give --cluster NAME, or --reset"), (("--reset", "--cluster", "other"), "give --reset alone")],
)
def test_a_move_goes_to_one_place(arguments: tuple[str, ...], said: str, applied: Path, deployer: Deployer) -> None:
    ran = deployer("service", "move", TABLE, *arguments)
    assert ran.code == 1 and said in ran.err


def test_services_are_stopped_and_run_while_specs_have_problems(applied: Path, deployer: Deployer) -> None:
    deployer("service", "create", TABLE, "compact")
    (applied / "specs" / "planes.yaml").write_text("kind: Table\ncolums: []\n", encoding="utf-8")
    assert deployer("validate").code == 1
    for command, said in (("pause", "COMPACT is paused"), ("resume", "COMPACT is resumed"), ("run", "nothing to do")):
        ran = deployer("service", command, TABLE, "compact")
        assert ran.code == 0 and said in ran.out and "(see `deployer validate`)" in " ".join(ran.err.split()), ran
    ran = deployer("service", "cancel", TABLE, "compact")
    assert "colums" not in ran.err and "no run" in ran.err
    assert deployer("service", "run", "--all").code == 0
    assert deployer("service", "run", TABLE, "compact", "--dry-run").code == 1
    ran = deployer("service", "run", TABLE, "compact", "--cluster", "big")
    assert ran.code == 1 and "no cluster 'big' is declared" in ran.err
    for command in ("create", "alter", "delete"):  # what specs declare
        assert deployer("service", command, TABLE, "clean").code == 1
