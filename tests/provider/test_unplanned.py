"""Policies hold for plain runs of Pulumi: the plugin, started as Pulumi starts it, judges as `deployer preview` does.

The embedded engine stands in for Pulumi's: it runs the program, and the provider as the executable that the project
names, over Pulumi's protocol and without deployer's plan.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from deployer.cli.main import run
from deployer.engine import Diagnostic, Event, StackRef, read_project
from deployer.engine.embedded import EmbeddedEngine
from deployer.errors import EngineFailed
from deployer.provider.provider import LakeProvider
from deployer.provider.resources.deletions import DELETIONS_VARIABLE, Deletions
from deployer.provider.resources.run_context import Stores
from deployer.provider.unplanned import Judgement, UnplannedRun
from tests.projects import INSTANCE, make_project, table

URN = "urn:pulumi:dev::lakes::lake:index:Instance::demo"
OWNERS = "kind: Policy\nrule: required-tags\n"
NEVER = (
    "from deployer.policy import rule\n\n\n@rule\ndef nothing_new(plan):\n"
    '    """Nothing is created."""\n'
    "    return [change.violation('it is new') for change in plan.changes if change.action == 'create']\n"
)
KEEPS = "kind: Policy\nrule: destroys-data\n"


def approval(rule: str, address: str) -> str:
    return f"---\nkind: Approval\nrule: {rule}\naddress: {address}\nby: jane\nreason: TICKET-7\nuntil: 2999-12-31\n"


class Pulumi:
    """`pulumi` in a project, as far as the engine and the provider are concerned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.warnings: list[str] = []

    def up(self) -> None:
        EmbeddedEngine({}).up(self._stack(), on_event=self._take)

    def preview(self) -> None:
        EmbeddedEngine({}).preview(self._stack(), on_event=self._take)

    def destroy(self) -> None:
        EmbeddedEngine({}).destroy(self._stack(), on_event=self._take)

    def put(self, **files: str) -> None:
        """Files of policies/; `rules_yaml` is rules.yaml."""
        (self.folder / "policies").mkdir(exist_ok=True)
        for name, text in files.items():
            (self.folder / "policies" / name.replace("_", ".")).write_text(text, encoding="utf-8")

    def _stack(self) -> StackRef:
        return StackRef(read_project(self.folder), "dev")

    def _take(self, event: Event) -> None:
        if isinstance(event, Diagnostic) and event.severity == "warning":
            self.warnings.append(event.message)


@pytest.fixture
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pulumi:
    """A project of one table."""
    monkeypatch.delenv(DELETIONS_VARIABLE, raising=False)
    specs = {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32")}
    folder = make_project(tmp_path / "project", specs)
    monkeypatch.chdir(folder)
    return Pulumi(folder)


def previewed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Rule and address of what refuses the run, by `deployer preview`."""
    capsys.readouterr()
    run(["preview", "--policy-only", "--json"])
    monkeypatch.delenv(DELETIONS_VARIABLE, raising=False)  # as in the shell in which Pulumi is run
    found = json.loads(capsys.readouterr().out)["policy"]["violations"]
    mandatory = (each for each in found if each["enforcement"] == "mandatory" and not each["approved"])
    return [(each["rule"], each["address"]) for each in mandatory]


def test_a_plain_up_is_refused_where_preview_would_be(
    pulumi: Pulumi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pulumi.put(rules_yaml=OWNERS, new_py=NEVER)
    denied = previewed(capsys, monkeypatch)
    assert {rule for rule, _ in denied} == {"required-tags", "nothing-new"}
    for attempt in (pulumi.preview, pulumi.up):
        with pytest.raises(EngineFailed) as failed:
            attempt()
        for rule, address in denied:
            assert f"the policy {rule} is broken: {address}: " in failed.value.what
        assert "fix the specs, or have the change approved in policies/" in failed.value.what
    assert not (pulumi.folder / "lakes").exists()


def test_what_preview_allows_is_applied(
    pulumi: Pulumi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Approvals count, rules of other stacks do not, and what is advisory is shown."""
    pulumi.put(
        rules_yaml=OWNERS + approval("required-tags", "table/air.flights"),
        advice_yaml="kind: Policy\nrule: descriptions\nenforcement: advisory\n",
        prod_yaml="kind: Policy\nrule: naming\ntables: none\nstacks: [prod]\n",
    )
    assert previewed(capsys, monkeypatch) == []
    pulumi.up()
    assert (pulumi.folder / "lakes" / "demo" / "_state").is_dir()
    [warning] = pulumi.warnings
    assert "the policy descriptions is broken: table/air.flights: " in warning and "(advisory)" in warning


@pytest.mark.full
def test_what_a_run_takes_away_is_judged(pulumi: Pulumi) -> None:
    """A table that no spec declares any more, and the stack as a whole."""
    pulumi.up()
    pulumi.put(rules_yaml=KEEPS)
    (pulumi.folder / "rows.csv").write_text("id,delay\n1,2\n", encoding="utf-8")
    assert run(["ingest", "flights", "rows.csv"]) == 0
    with pytest.raises(EngineFailed, match=r"the policy destroys-data is broken: table/air\.flights"):
        pulumi.destroy()
    (pulumi.folder / "specs" / "flights.yaml").unlink()
    with pytest.raises(EngineFailed, match=r"the policy destroys-data is broken: table/air\.flights"):
        pulumi.up()
    assert run(["query", "flights"]) == 0


def judged(folder: Path) -> Judgement:
    return UnplannedRun(folder, lambda _: None).judgement(URN)


def test_broken_policies_refuse_the_run(pulumi: Pulumi) -> None:
    pulumi.put(rules_yaml="kind: Policy\nrule: nonsense\n")
    [refusal] = judged(pulumi.folder).refusals
    assert refusal.startswith("policies/rules.yaml:2:7: there is no built-in rule `nonsense`")


def test_a_lake_that_cannot_be_planned_is_refused(pulumi: Pulumi) -> None:
    pulumi.put(rules_yaml=OWNERS)
    (pulumi.folder / "Pulumi.dev.yaml").write_text("config:\n  deployer:specs: nowhere\n", encoding="utf-8")
    [refusal] = judged(pulumi.folder).refusals
    assert "the policies could not be evaluated: " in refusal and "no such file or folder of specs" in refusal


def test_a_program_registers_what_was_judged(pulumi: Pulumi) -> None:
    pulumi.put(rules_yaml=OWNERS + approval("required-tags", "table/air.flights"))
    provider = LakeProvider(Stores(pulumi.folder), UnplannedRun(pulumi.folder, lambda _: None))
    _, failures = provider.check(URN, {"name": "demo", "root": "lakes/other"})
    [reason] = [each.reason for each in failures]
    assert "the program registers it differently from the specs: " in reason and "root" in reason


def test_runs_that_deployer_planned_are_judged_once(pulumi: Pulumi, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin that the Pulumi CLI starts for `deployer up` asks no policies: it has what the plan deletes."""
    pulumi.put(rules_yaml=OWNERS)
    monkeypatch.setenv(DELETIONS_VARIABLE, Deletions().as_text())
    pulumi.up()
    assert (pulumi.folder / "lakes").exists()


def test_without_policies_nothing_is_asked(pulumi: Pulumi, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", fail)
    assert judged(pulumi.folder) == Judgement()
