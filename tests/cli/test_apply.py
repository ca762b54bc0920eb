"""preview, up and destroy as a user runs them, on the embedded engine and real datasets."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests import forks
from tests.cli.conftest import Deployer


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def dataset_of(project: Path, name: str) -> lance.LanceDataset:
    [location] = (project / "lakes" / "demo" / "air").glob(f"{name}-*.lance")
    return lance.dataset(str(location))


def add_rows(project: Path, name: str) -> None:
    """Rows by plain Lance, as somebody without deployer would write them."""
    dataset = dataset_of(project, name)
    rows = pa.table({"id": [1, 2, 3], **{extra: [None] * 3 for extra in dataset.schema.names[1:]}}, dataset.schema)
    lance.write_dataset(rows, dataset.uri, mode="append")


def test_a_lake_from_nothing_to_gone(project: Path, deployer: Deployer) -> None:
    first = deployer("preview", "--exit-code")
    assert (first.code, "Plan: 3 to create" in first.out) == (2, True)
    assert not (project / "lakes").exists()
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert dataset_of(project, "flights").schema.names == ["id", "delay"]
    assert deployer("destroy", "--yes").code == 0
    assert not (project / "lakes" / "demo").exists()
    assert deployer("preview", "--exit-code").code == 2


def test_what_up_can_change_is_nothing_to_do_afterwards(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    edit(
        project / "specs" / "flights.yaml",
        "  - {name: delay",
        "  - {name: gate, type: 'struct<hall: string>', description: Where.}\n  - {name: delay",
    )
    with (project / "specs" / "flights.yaml").open("a") as file:
        file.write("description: Departures.\nonline: false\ndeletion_protection: false\ntags: {tier: gold}\n")
    edit(project / "specs" / "demo.yaml", "engine:", "description: A demo.\ntags: {owner: data}\nengine:")
    plan = deployer("preview", "--json").json
    assert [(item["address"], [change["kind"] for change in item["changes"]]) for item in plan["resources"]] == [
        ("instance/demo", ["ChangeDescription", "ChangeTags"]),
        ("table/air.flights", ["AddColumn", "SetOnline", "SetDeletionProtection", "ChangeDescription", "ChangeTags"]),
    ]
    assert plan["resources"][1]["changes"][0]["cause"] == "specs/flights.yaml:6:5"
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    schema = dataset_of(project, "flights").schema
    assert schema.names == ["id", "gate", "delay"]
    assert schema.field("gate").metadata == {b"description": b"Where."}


def test_a_change_that_is_refused_changes_nothing(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    add_rows(project, "flights")
    edit(project / "specs" / "flights.yaml", "int32", "string")
    edit(project / "specs" / "planes.yaml", "row_keys", "description: Planes.\nrow_keys")
    refused = deployer("up", "--yes")
    assert refused.code == 3
    assert "values may be lost: declare with `using:`" in refused.out
    assert "1 change is refused; nothing was changed" in refused.err
    kinds = [change["kind"] for item in deployer("preview", "--json").json["resources"] for change in item["changes"]]
    assert kinds == ["ConvertColumn", "ChangeDescription"]


def test_the_type_of_a_key_changes_freely_while_the_table_is_empty(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    edit(project / "specs" / "flights.yaml", "name: id, type: int64", "name: id, type: string")
    plan = deployer("preview", "--json").json
    assert plan["refused"] == 0
    assert [change["kind"] for each in plan["resources"] for change in each["changes"]] == ["ConvertColumn"]
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    (project / "rows.csv").write_text("id,delay\nAA1,5\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0


def test_a_table_with_rows_is_deleted_only_by_name(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    add_rows(project, "flights")
    (project / "specs" / "flights.yaml").unlink()
    refused = deployer("up", "--yes", "--json")
    assert refused.code == 3
    assert refused.json["error"]["refused"] == [
        {"address": "table/air.flights", "why": "destroys data; to allow it: --allow-destroy table/air.flights"}
    ]
    assert dataset_of(project, "flights").count_rows() == 3
    assert deployer("up", "--yes", "--allow-destroy", "table/air.flights").code == 0
    assert not list((project / "lakes" / "demo" / "air").glob("flights-*"))


def test_destroy_keeps_protected_rows(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    add_rows(project, "flights")
    assert deployer("destroy", "--yes").code == 3
    with (project / "specs" / "flights.yaml").open("a") as file:
        file.write("deletion_protection: false\n")
    assert deployer("destroy", "--yes").code == 3, "what is applied counts, not what is written"
    assert deployer("up", "--yes").code == 0
    assert deployer("destroy", "--yes").code == 0


def test_the_provider_keeps_protection_by_itself(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the engine without the planner in front of it, as `pulumi up` does, cannot delete rows either."""
    from deployer.engine import StackRef, read_project
    from deployer.engine.embedded import EmbeddedEngine
    from deployer.errors import EngineFailed
    from deployer.provider.resources.deletions import DELETIONS_VARIABLE

    deployer("up", "--yes")
    add_rows(project, "flights")
    monkeypatch.delenv(DELETIONS_VARIABLE, raising=False)  # of the run above, which was in this process
    with pytest.raises(EngineFailed, match="holds 3 rows and is protected"):
        EmbeddedEngine({}).destroy(StackRef(read_project(project), "dev"))
    assert dataset_of(project, "flights").count_rows() == 3


def test_a_column_added_by_hand_is_seen(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    dataset_of(project, "flights").add_columns(pa.field("by_hand", pa.int32()))
    plan = deployer("preview", "--json").json
    assert [change["summary"] for change in plan["resources"][0]["changes"]] == ["drop column by_hand"]


def test_two_stacks_do_not_share_an_instance(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    other = deployer("up", "--yes", "--stack", "other")
    assert other.code == 3
    assert "stack lakes/dev manages the lake" in other.err and "give --stack dev" in other.err


def test_a_lost_pulumi_state_is_taken_up_again(project: Path, deployer: Deployer) -> None:
    deployer("up", "--yes")
    add_rows(project, "flights")
    (project / ".pulumi" / "stacks" / "lakes" / "dev.json").unlink()
    assert deployer("up", "--yes").code == 0
    assert dataset_of(project, "flights").count_rows() == 3
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["up", "--stack", "../x"], "is not a valid name for a stack", id="stack-name"),
        pytest.param(["preview", "--specs", "nowhere"], "no such file or folder of specs", id="no-specs"),
        pytest.param(["preview", "--project", "specs"], "no Pulumi.yaml found", id="no-project"),
        pytest.param(["up"], "nothing can be confirmed; pass --yes", id="nobody-to-ask"),
        pytest.param(["destory"], "No such command 'destory'. Did you mean 'destroy'", id="typo"),
        pytest.param(["up", "--allow-destroy"], "requires an argument", id="missing-argument"),
    ],
)
def test_wrong_input_is_said_in_words(project: Path, deployer: Deployer, arguments: list[str], words: str) -> None:
    ran = deployer(*arguments)
    assert ran.code == 1
    assert words in ran.err
    assert "Traceback" not in ran.err


def test_specs_with_problems_stop_every_command(project: Path, deployer: Deployer) -> None:
    edit(project / "specs" / "flights.yaml", "int32", "int33")
    for command in ("validate", "preview", "up", "destroy"):
        ran = deployer(command)
        assert ran.code == 1
        assert "specs/flights.yaml:6:" in ran.err
    assert deployer("validate", "--json").json["error"]["problems"][0]["file"] == "specs/flights.yaml"


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Types an answer on a pseudo-terminal, which stands in for the person's."""
    person, terminal = pty.openpty()
    with os.fdopen(terminal, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)

        def type_it(text: str) -> None:
            os.write(person, f"{text}\n".encode())

        yield type_it
    os.close(person)


def test_an_answer_of_no_changes_nothing(project: Path, deployer: Deployer, answer: Callable[[str], None]) -> None:
    answer("n")
    ran = deployer("up")
    assert (ran.code, "Nothing was changed" in ran.err) == (130, True)
    assert not (project / "lakes").exists()
    answer("y")
    assert deployer("up").code == 0
    assert (project / "lakes").exists()


def test_destroy_asks_for_the_name(project: Path, deployer: Deployer, answer: Callable[[str], None]) -> None:
    deployer("up", "--yes")
    answer("dmeo")
    ran = deployer("destroy")
    assert (ran.code, "nothing was changed" in ran.err) == (130, True)
    assert (project / "lakes" / "demo").exists()
    answer("demo")
    assert deployer("destroy").code == 0
    assert not (project / "lakes" / "demo").exists()


def test_an_interrupted_up_saves_what_was_done(project: Path, deployer: Deployer) -> None:
    """Ctrl-C while the second table is being made; the process is stopped there, so that the signal is sure to hit."""
    environment = {**os.environ, "DEPLOYER_FAILPOINT": "tables.create.written@2=stop"}
    command = [sys.executable, "-m", "deployer", "up", "--yes"]
    process = forks.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.waitpid(process.pid, os.WUNTRACED)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "stopped before all steps were done" in err
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert len(list((project / "lakes" / "demo" / "air").iterdir())) == 2
