"""`-` as a file: standard input."""

from __future__ import annotations

import gzip
import io
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from deployer.cli.inputs.standard_input import refuse_standard_input
from deployer.errors import InvalidInput
from tests.cli.conftest import Deployer


def send(monkeypatch: pytest.MonkeyPatch, data: bytes, *, terminal: bool = False) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: terminal)
    monkeypatch.setattr(sys, "stdin", stdin)


CSV = b"id,delay\n1,5\n2,6\n"


@pytest.mark.usefixtures("applied")
@pytest.mark.parametrize("data", [CSV, gzip.compress(CSV)], ids=["plain", "gz"])
def test_a_load_reads_standard_input(
    data: bytes, deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    send(monkeypatch, data)
    ran = deployer("ingest", "air.flights", "-", "--format", "csv", "--json")
    assert (ran.code, ran.json["rows"]) == (0, 2)
    assert not list(temporary.glob("deployer-stdin-*"))


def test_a_spec_is_inferred_from_standard_input(deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    send(monkeypatch, CSV)
    ran = deployer("schema", "infer", "-", "--format", "csv", "--table", "air.delays")
    assert ran.code == 0
    assert "name: delay" in ran.out


@pytest.mark.usefixtures("applied")
@pytest.mark.parametrize(
    ("arguments", "terminal", "says"),
    [
        pytest.param(("-",), False, "give --format", id="format"),
        pytest.param(("-", "--format", "csv"), True, "standard input is a terminal", id="terminal"),
    ],
)
def test_what_cannot_be_read(
    arguments: tuple[str, ...], terminal: bool, says: str, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(monkeypatch, CSV, terminal=terminal)
    ran = deployer("ingest", "air.flights", *arguments)
    assert ran.code == 1
    assert says in ran.err


@pytest.mark.usefixtures("applied")
def test_messages_name_it(deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    send(monkeypatch, b"id,delay\n1,x\n")
    assert "standard input: row 1" in deployer("ingest", "air.flights", "-", "--format", "csv").err


def test_a_cluster_does_not_read_it() -> None:
    with pytest.raises(InvalidInput, match="cannot read the standard input"):
        refuse_standard_input(["a.csv", "-"])
    refuse_standard_input(["a.csv"])
