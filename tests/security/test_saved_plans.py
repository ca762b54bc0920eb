"""F15: saved plans that somebody changed, or that are not those that were reviewed, and what is asked before them."""

# ruff: noqa: F811 -- pytest finds imported fixtures by the names of arguments
from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from deployer.plan.saved.file import _checksum, read_plan
from tests.cli.conftest import TWO_TABLES, Deployer, project  # noqa: F401
from tests.cli.test_apply import add_rows
from tests.projects import applied_project

PRIVATE, PUBLIC = "DEPLOYER_PLAN_KEY", "DEPLOYER_PLAN_PUBLIC_KEY"
PLAN = "demo.plan"


def digest(file: Path) -> str:
    return f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


def private_pem(key: Any) -> str:
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def public_pem(key: Any) -> str:
    return str(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PRIVATE, raising=False)
    monkeypatch.delenv(PUBLIC, raising=False)


def fill() -> None:
    add_rows(Path.cwd(), "flights")
    add_rows(Path.cwd(), "planes")


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables with rows, and the specs without one of them."""
    folder = applied_project(tmp_path / "project", TWO_TABLES, fill)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def plan(applied: Path, deployer: Deployer) -> Path:
    """A plan that adds a column and takes nothing away."""
    flights = applied / "specs" / "flights.yaml"
    flights.write_text(flights.read_text() + "description: Departures.\n")
    assert deployer("preview", "--out", PLAN).code == 0
    return applied / PLAN


def edited(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the plan as somebody would who knows how the checksum is made."""
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    document["checksum"] = _checksum(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def drop_planes(document: dict[str, Any]) -> None:
    tables = document["desired"]["tables"]
    document["desired"]["tables"] = [table for table in tables if table["name"] != "planes"]
    document["allow_destroy"].append("table/air.planes")


def tables(project: Path) -> set[str]:
    return {path.name.split("-")[0] for path in (project / "lakes" / "demo" / "air").glob("*.lance")}


# --- the reproduction


def test_an_edited_plan_does_not_destroy_without_a_question(applied: Path, plan: Path, deployer: Deployer) -> None:
    """F15: `planes` is dropped from what is desired, and allowed to go."""
    edited(plan, drop_planes)
    ran = deployer("up", PLAN)
    assert (ran.code, "stdin is not a terminal, so nothing can be confirmed; pass --yes" in ran.err) == (1, True), (
        ran.err
    )
    assert "destroys" in ran.out and "delete table" in ran.out  # what was asked about is what would be done
    assert tables(applied) == {"flights", "planes"}


def test_an_edited_plan_is_not_the_expected_one(applied: Path, plan: Path, deployer: Deployer) -> None:
    reviewed = digest(plan)
    edited(plan, drop_planes)
    ran = deployer("up", PLAN, "--expect", reviewed, "--yes")
    assert (ran.code, "this is not the expected plan" in ran.err) == (3, True), ran.err
    assert digest(plan) in ran.err and reviewed in ran.err
    assert tables(applied) == {"flights", "planes"}


def test_an_edited_plan_does_not_fit_its_signature(
    applied: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Ed25519PrivateKey.generate()
    monkeypatch.setenv(PRIVATE, private_pem(key))
    assert deployer("preview", "--out", PLAN).code == 0
    monkeypatch.delenv(PRIVATE)
    monkeypatch.setenv(PUBLIC, public_pem(key))
    edited(applied / PLAN, drop_planes)
    ran = deployer("up", PLAN, "--yes")
    assert (ran.code, "the plan's signature does not match it" in ran.err) == (3, True), ran.err
    assert tables(applied) == {"flights", "planes"}


# --- digests


@pytest.mark.parametrize("form", ["tree", "markdown", "html", "json"])
def test_every_form_of_a_preview_shows_the_digest_of_the_file(form: str, project: Path, deployer: Deployer) -> None:
    ran = deployer("preview", "--out", PLAN, "--format", form)
    found = digest(project / PLAN)
    if form == "json":
        assert ran.json["saved"] == {"file": PLAN, "digest": found, "signed_by": None}
    else:
        assert f"deployer up {PLAN} --expect {found}" in (ran.err if form == "tree" else ran.out)


def test_the_expected_plan_is_applied_and_named(project: Path, deployer: Deployer) -> None:
    deployer("preview", "--out", PLAN)
    found = digest(project / PLAN)
    ran = deployer("up", PLAN, "--expect", found.upper().replace("SHA256", "sha256"))
    assert (ran.code, f"{PLAN} is {found}" in ran.err) == (0, True), ran.err
    assert tables(project) == {"flights", "planes"}


def test_the_result_of_a_saved_plan_names_it(project: Path, deployer: Deployer) -> None:
    deployer("preview", "--out", PLAN)
    found = digest(project / PLAN)
    assert deployer("up", PLAN, "--json").json["plan"]["saved"]["digest"] == found


DIGESTS = {
    "short": "sha256:0123456789abcdef",
    "without_its_kind": "0" * 64,
    "another_kind": "md5:" + "0" * 32,
    "too_long": "sha256:" + "0" * 65,
    "no_digits": "sha256:" + "g" * 64,
    "empty": "",
    "several": f"sha256:{'0' * 64} sha256:{'1' * 64}",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_what_is_no_whole_digest_is_refused(name: str, project: Path, deployer: Deployer) -> None:
    deployer("preview", "--out", PLAN)
    ran = deployer("up", PLAN, "--expect", DIGESTS[name], "--yes")
    assert (ran.code, "is not the digest of a plan" in ran.err) == (1, True), ran.err
    assert not (project / "lakes").exists()


def test_a_digest_of_no_plan_is_refused(project: Path, deployer: Deployer) -> None:
    ran = deployer("up", "--expect", f"sha256:{'0' * 64}", "--yes")
    assert (ran.code, "--expect is the digest of a saved plan" in ran.err) == (1, True), ran.err
    assert not (project / "lakes").exists()


def test_another_digest_is_told_before_anything_is_parsed(project: Path, deployer: Deployer) -> None:
    (project / PLAN).write_text("{" * 300_000)
    ran = deployer("up", PLAN, "--expect", f"sha256:{'0' * 64}", "--yes")
    assert (ran.code, "this is not the expected plan" in ran.err) == (3, True), ran.err


def test_a_plan_is_read_once(project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was checked is what is applied, though the file is another by then."""
    deployer("preview", "--out", PLAN)
    found = digest(project / PLAN)

    def read_and_swap(*arguments: Any, **more: Any) -> Any:
        result = read_plan(*arguments, **more)
        edited(project / PLAN, drop_planes)
        return result

    monkeypatch.setattr("deployer.app.planning.saved_plan.read_plan", read_and_swap)
    assert deployer("up", PLAN, "--expect", found).code == 0
    assert tables(project) == {"flights", "planes"}


# --- questions


def test_a_plan_that_takes_nothing_away_asks_nobody(applied: Path, plan: Path, deployer: Deployer) -> None:
    assert deployer("up", PLAN).code == 0


def test_yes_is_an_answer(applied: Path, deployer: Deployer) -> None:
    (applied / "specs" / "planes.yaml").unlink()
    assert deployer("preview", "--out", PLAN, "--allow-destroy", "table/air.planes").code == 0
    asked = deployer("up", PLAN)
    assert (asked.code, "stdin is not a terminal" in asked.err) == (1, True), asked.err
    assert deployer("up", PLAN, "--yes").code == 0
    assert tables(applied) == {"flights"}


# --- signatures


def test_a_signed_plan_is_applied_with_the_public_key_alone(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Ed25519PrivateKey.generate()
    monkeypatch.setenv(PRIVATE, private_pem(key))
    shown = deployer("preview", "--out", PLAN, "--json")
    monkeypatch.delenv(PRIVATE)
    monkeypatch.setenv(PUBLIC, public_pem(key))
    ran = deployer("up", PLAN)
    signed_by = shown.json["saved"]["signed_by"]
    assert (ran.code, f"signed by {signed_by}" in ran.err, len(signed_by)) == (0, True, 16), ran.err
    assert "PRIVATE" not in (project / PLAN).read_text()


def test_the_signer_alone_may_apply_what_it_signed(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployer("preview", "--out", "unsigned.plan")
    monkeypatch.setenv(PRIVATE, private_pem(Ed25519PrivateKey.generate()))
    ran = deployer("up", "unsigned.plan", "--yes")
    assert (ran.code, "the plan is not signed" in ran.err) == (3, True), ran.err
    deployer("preview", "--out", PLAN)
    assert deployer("up", PLAN).code == 0


def without_signature(document: dict[str, Any]) -> None:
    del document["signature"]


def of_another(document: dict[str, Any]) -> None:
    document["signature"]["key"] = "0" * 16


def broken(document: dict[str, Any]) -> None:
    document["signature"]["ed25519"] = "AAAA"


def no_base64(document: dict[str, Any]) -> None:
    document["signature"]["ed25519"] = "%%%"


SIGNATURES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "none": (without_signature, "the plan is not signed"),
    "null": (lambda document: document.update(signature=None), "the plan is not signed"),
    "text": (lambda document: document.update(signature="yes"), "does not match"),
    "empty": (lambda document: document.update(signature={}), "does not match"),
    "list": (lambda document: document.update(signature=[1]), "does not match"),
    "number": (lambda document: document["signature"].update(ed25519=1), "does not match"),
    "broken": (broken, "does not match"),
    "no_base64": (no_base64, "does not match"),
    "claims_another_key": (of_another, ""),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_plan_without_the_right_signature_is_refused(
    name: str, project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, words = SIGNATURES[name]
    key = Ed25519PrivateKey.generate()
    monkeypatch.setenv(PRIVATE, private_pem(key))
    deployer("preview", "--out", PLAN)
    monkeypatch.setenv(PUBLIC, public_pem(key))
    edited(project / PLAN, change)
    ran = deployer("up", PLAN, "--yes")
    if words:
        assert (ran.code, words in ran.err) == (3, True), ran.err
        assert not (project / "lakes").exists()
    else:  # the name of the key is for people; what counts is the signature
        assert ran.code == 0


def test_a_plan_of_another_key_is_refused(project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PRIVATE, private_pem(Ed25519PrivateKey.generate()))
    deployer("preview", "--out", PLAN)
    monkeypatch.setenv(PUBLIC, public_pem(Ed25519PrivateKey.generate()))
    ran = deployer("up", PLAN, "--yes")
    assert (ran.code, "the plan is signed by another key" in ran.err) == (3, True), ran.err
    assert not (project / "lakes").exists()


def test_a_signature_of_one_plan_is_none_of_another(
    applied: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRIVATE, private_pem(Ed25519PrivateKey.generate()))
    deployer("preview", "--out", "good.plan")
    (applied / "specs" / "planes.yaml").unlink()
    deployer("preview", "--out", "bad.plan", "--allow-destroy", "table/air.planes")
    signature = json.loads((applied / "good.plan").read_text())["signature"]
    edited(applied / "bad.plan", lambda document: document.update(signature=signature))
    ran = deployer("up", "bad.plan", "--yes")
    assert (ran.code, "does not match" in ran.err) == (3, True), ran.err
    assert tables(applied) == {"flights", "planes"}


KEYS: dict[str, tuple[str, str, str]] = {
    "private_empty": (PRIVATE, "", "DEPLOYER_PLAN_KEY is empty"),
    "private_no_pem": (PRIVATE, "secret", "is not a private Ed25519 key"),
    "private_other_kind": (PRIVATE, private_pem(X25519PrivateKey.generate()), "is not a private Ed25519 key"),
    "private_is_public": (PRIVATE, public_pem(Ed25519PrivateKey.generate()), "is not a private Ed25519 key"),
    "public_empty": (PUBLIC, " \n", "DEPLOYER_PLAN_PUBLIC_KEY is empty"),
    "public_no_pem": (PUBLIC, "-----BEGIN PUBLIC KEY-----", "is not a public Ed25519 key"),
    "public_is_private": (PUBLIC, private_pem(Ed25519PrivateKey.generate()), "is not a public Ed25519 key"),
}


@pytest.mark.parametrize("name", KEYS)
def test_what_is_no_key_is_refused_in_words(
    name: str, project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unset secret of a pipeline is an empty text: then nothing may count as signed, or as checked."""
    variable, text, words = KEYS[name]
    deployer("preview", "--out", PLAN)
    monkeypatch.setenv(variable, text)
    ran = deployer("up", PLAN, "--yes")
    assert (ran.code, words in ran.err) == (1, True), ran.err
    assert "BEGIN" not in ran.err and not (project / "lakes").exists()
    if variable == PRIVATE:
        before = digest(project / PLAN)
        ran = deployer("preview", "--out", PLAN)
        assert (ran.code, words in ran.err, digest(project / PLAN)) == (1, True, before), ran.err
