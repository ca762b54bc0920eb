"""Secrets: in the program, in the configuration, in the state; by passphrase, as the CLI keeps them."""

from __future__ import annotations

import json

import pytest
import yaml

from deployer.engine.secrets.encryption import Secrets, StackKeys
from deployer.engine.secrets.keepers import ByPassphrase
from deployer.engine.secrets.passphrase import new_salt, open_salt
from deployer.errors import EngineFailed, InvalidInput, Refused
from tests.engine.conftest import Lab

SIG = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
PROGRAM = """
a = File("a", content="open", secret=pulumi.Output.secret("hush-hush"))
File("b", content=pulumi.Output.secret("also hush-hush").apply(lambda text: text.upper()))
File("c", content="open", opts=Opts(additional_secret_outputs=["path"]))
pulumi.export("hidden", pulumi.Output.secret({"token": "hush-hush"}))
"""
# a salt that the Go implementation of Pulumi made (pkg/secrets/passphrase)
GO_SALT = "v1:fozI5u6B030=:v1:F+6ZduKKd8G0/V7L:PGMFeIzwobWRKmEAzUdaQHqC5mMRIQ=="
GO_PHRASE = "password"


def test_nothing_secret_is_readable_anywhere(lab: Lab) -> None:
    plan = lab.preview(PROGRAM)
    result = lab.up()
    assert result.outputs["hidden"] == "[secret]"
    text = repr(plan) + repr(result) + repr(lab.events)
    assert "hush" not in text.lower()
    for file in (lab.dir / ".pulumi").rglob("*"):
        assert not file.is_file() or b"hush" not in file.read_bytes().lower(), file
    assert lab.files()["b.txt"] == "ALSO HUSH-HUSH"
    a, c = lab.resource("a"), lab.resource("c")
    assert a["inputs"]["secret"].keys() == {SIG, "ciphertext"}
    assert a["inputs"]["secret"][SIG] == SECRET
    assert c["outputs"]["path"][SIG] == SECRET
    assert c["outputs"]["content"] == "open"


def test_an_imported_secret_is_kept_secret(lab: Lab) -> None:
    lab.root.joinpath("files").mkdir(parents=True)
    lab.root.joinpath("files", "old.txt").write_text("hush-hush")
    lab.up('File("a", name="old", content=pulumi.Output.secret("hush-hush"), opts=Opts(import_="old.txt"))')
    for file in (lab.dir / ".pulumi").rglob("*"):
        assert not file.is_file() or b"hush" not in file.read_bytes(), file


def test_the_salt_goes_into_the_stacks_file_and_the_state(lab: Lab) -> None:
    (lab.dir / "Pulumi.dev.yaml").write_text("# kept\nconfig:\n  demo:x: y\n")
    lab.up(PROGRAM)
    text = (lab.dir / "Pulumi.dev.yaml").read_text()
    doc = yaml.safe_load(text)
    assert "# kept" in text and doc["config"] == {"demo:x": "y"}
    assert doc["encryptionsalt"].startswith("v1:")
    assert lab.deployment()["secrets_providers"] == {"type": "passphrase", "state": {"salt": doc["encryptionsalt"]}}


def test_an_unchanged_secret_keeps_its_ciphertext(lab: Lab) -> None:
    lab.up(PROGRAM)
    before = {doc["urn"]: doc for doc in lab.resources()}  # what is made at the same time has no order
    lab.up()
    assert {doc["urn"]: doc for doc in lab.resources()} == before


def test_secrets_are_readable_for_a_plugin_and_the_program(lab: Lab) -> None:
    lab.install_plugin()
    lab.up(PROGRAM)
    assert lab.files()["b.txt"] == "ALSO HUSH-HUSH"
    assert lab.resource("a")["outputs"]["secret"][SIG] == SECRET
    assert lab.preview().changes == ()


def test_a_changed_passphrase_reads_the_old_secrets_and_writes_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "x")
    (old_salt, old), (new_salt_, new) = new_salt("x"), new_salt("x")
    secrets = Secrets(StackKeys(configured=ByPassphrase(new_salt_)), ByPassphrase(old_salt))
    for crypter, text in ((old, "before"), (new, "after")):
        stored = {SIG: SECRET, "ciphertext": crypter.encrypt(json.dumps(text))}
        assert secrets.reveal(stored, ("urn", "inputs")) == {SIG: SECRET, "value": text}
    assert secrets.keeper == ByPassphrase(new_salt_)
    assert new.decrypt(secrets.encrypt("more")) == '"more"'


def test_without_secrets_no_passphrase_is_needed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    lab.up('File("a")')
    assert "secrets_providers" not in lab.deployment()
    assert not (lab.dir / "Pulumi.dev.yaml").exists()


def test_without_a_passphrase_secrets_are_refused_before_anything_is_done(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    with pytest.raises(Refused, match="no passphrase is set"):
        lab.up(PROGRAM)
    assert "a.txt" not in lab.files()


def test_a_wrong_passphrase_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.up(PROGRAM)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "wrong")
    with pytest.raises(Refused, match="not the one of this stack"):
        lab.engine().up(lab.stack())


def test_the_passphrase_may_come_from_a_file(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.up(PROGRAM)
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    (lab.dir / "phrase").write_text("correct horse\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(lab.dir / "phrase"))
    assert lab.up().summary.keys() == {"same"}
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(lab.dir / "none"))
    with pytest.raises(InvalidInput, match="cannot read the passphrase"):
        lab.engine().up(lab.stack())


def test_secret_configuration_is_decrypted_and_stays_secret(lab: Lab) -> None:
    salt, crypter = new_salt("correct horse")
    config = {
        "demo:plain": "seen",
        "demo:hidden": {"secure": crypter.encrypt("hush-hush")},
        "demo:nested": {"user": "me", "password": {"secure": crypter.encrypt("hush-hush")}},
    }
    (lab.dir / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"encryptionsalt": salt, "config": config}))
    result = lab.up(
        """
        config = pulumi.Config()
        File("a", content=config.require_secret("hidden"))
        File("b", content=config.require("plain") + config.require_object("nested")["user"])
        pulumi.export("hidden", config.require_secret("hidden"))
        """
    )
    assert lab.files() == {"a.txt": "hush-hush", "b.txt": "seenme"}
    assert result.outputs["hidden"] == "[secret]"
    assert b"hush" not in lab.checkpoint.read_bytes()


def test_the_salt_of_the_go_implementation_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", GO_PHRASE)
    assert open_salt(GO_SALT)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "123")
    with pytest.raises(Refused, match="not the one of this stack"):
        open_salt(GO_SALT)


def test_values_of_every_kind_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    salt, _ = new_salt("x")
    saved: list[object] = []
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "x")
    secrets = Secrets(StackKeys(configured=ByPassphrase(salt), save=saved.append), None)
    value = {"a": {SIG: SECRET, "value": {"b": [1, 2.5, None, True, "ü"]}}, "c": "plain"}
    stored = secrets.hide(value, ("urn", "inputs"))
    assert "ü" not in json.dumps(stored, ensure_ascii=False)
    assert secrets.reveal(stored, ("urn", "inputs")) == value
    assert saved == []


def test_failing_programs_do_not_show_secrets(lab: Lab) -> None:
    with pytest.raises(EngineFailed) as failed:
        lab.up('File("a", content=pulumi.Output.secret("hush-hush"), fail="create")')
    assert "hush" not in str(failed.value)
