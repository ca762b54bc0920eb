"""F7, F30, F31: secrets of Pulumi's state, in the embedded engine."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployer.engine import Diagnostic, ProgramOutput, StackRef
from deployer.engine.persistence.backend import stack_files
from deployer.engine.persistence.locks import locked
from deployer.engine.persistence.rekey import change_keeper
from deployer.engine.persistence.store import StackStore
from deployer.engine.project.config import read_keys
from deployer.engine.secrets import passphrase as by_passphrase
from deployer.engine.secrets.crypter import Crypter, WrongKey
from deployer.engine.secrets.passphrase import crypter_of, new_salt
from deployer.engine.values.snapshot import End
from deployer.errors import Conflict, Corrupt, DeployerError, EngineFailed, Refused
from deployer.platform.text import masking
from tests.engine.conftest import Lab, lab_in

VARIABLE = "PULUMI_CONFIG_PASSPHRASE"
TWICE = """
File("a", content=pulumi.Output.secret("the same text"), secret=pulumi.Output.secret("the same text"))
File("b", content=pulumi.Output.secret("the same text"))
pulumi.export("hidden", pulumi.Output.secret("the same text"))
"""
CONFIGURED = """
config = pulumi.Config()
secret = config.require_secret("token")
File("a", content=secret, labels=[config.get("plain")])
File("b", content=secret.apply(lambda text: text.upper()))
pulumi.export("n", config.require_secret_int("number").apply(lambda number: number + 1))
pulumi.export("o", config.require_secret_object("nested").apply(lambda found: found["password"]))
pulumi.export("shown", config.require_object("nested")["user"])
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    for name in ("PULUMI_CONFIG_PASSPHRASE_FILE", "PULUMI_BACKEND_URL", "DEPLOYER_NEW_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(VARIABLE, "correct horse")
    return lab_in(tmp_path)


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A key takes a third of a second otherwise."""
    monkeypatch.setattr(by_passphrase, "_ROUNDS", 10)
    by_passphrase._key.cache_clear()
    yield
    by_passphrase._key.cache_clear()


def configured(lab: Lab, *, secret_root: bool = False) -> None:
    salt, crypter = new_salt("correct horse")
    config = {
        "demo:token": {"secure": crypter.encrypt("hush-hush-hush")},
        "demo:number": {"secure": crypter.encrypt("41")},
        "demo:nested": {"user": "me", "password": {"secure": crypter.encrypt("hush-other-hush")}},
        "demo:plain": "seen",
        "files:root": {"secure": crypter.encrypt(str(lab.root))} if secret_root else str(lab.root),
    }
    (lab.dir / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"encryptionsalt": salt, "config": config}))


def ciphertexts(value: Any) -> list[str]:
    """All of them in a document."""
    if isinstance(value, dict):
        own = [value["ciphertext"]] if "ciphertext" in value else []
        return own + [each for item in value.values() for each in ciphertexts(item)]
    return [each for item in value for each in ciphertexts(item)] if isinstance(value, list) else []


# --- F7: empty passphrases


@pytest.mark.parametrize("phrase", ["", "  \n"])
def test_no_secret_is_stored_with_an_empty_passphrase(phrase: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: a secret of a pipeline that does not exist is an empty text, with which anybody decrypts."""
    monkeypatch.setenv(VARIABLE, phrase)
    with pytest.raises(Refused, match=f"{VARIABLE} is empty"):
        lab.up(TWICE)
    assert lab.files() == {} and not (lab.dir / "Pulumi.dev.yaml").exists()
    monkeypatch.setenv("DEPLOYER_ALLOW_EMPTY_PASSPHRASE", "1")
    lab.up(TWICE)
    assert len(lab.files()) == 2


def test_an_empty_file_is_an_empty_passphrase(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: the same by `PULUMI_CONFIG_PASSPHRASE_FILE`."""
    monkeypatch.delenv(VARIABLE)
    (lab.dir / "phrase").write_text("\n")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", str(lab.dir / "phrase"))
    with pytest.raises(Refused, match="is empty"):
        lab.up(TWICE)


def test_a_state_of_an_empty_passphrase_is_read_and_given_another(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: what was stored so is not lost, and can be encrypted anew."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("DEPLOYER_ALLOW_EMPTY_PASSPHRASE", "1")
    lab.up(TWICE)
    monkeypatch.delenv("DEPLOYER_ALLOW_EMPTY_PASSPHRASE")
    with pytest.raises(Refused, match="change-secrets-provider"):
        lab.up()
    with pytest.raises(Refused, match="DEPLOYER_NEW_PASSPHRASE is empty"):
        change_keeper(lab.stack(), "passphrase")
    monkeypatch.setenv("DEPLOYER_NEW_PASSPHRASE", "battery staple")
    change_keeper(lab.stack(), "passphrase")
    monkeypatch.setenv(VARIABLE, "battery staple")
    assert lab.up().summary.keys() == {"same"}
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv("DEPLOYER_NEW_PASSPHRASE")
    with pytest.raises(Refused, match="not the one of this stack"):
        lab.destroy()


def test_changing_the_key_keeps_configuration_and_state(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: rotation, and rotation that was interrupted between the two files."""
    configured(lab)
    with (lab.dir / "Pulumi.dev.yaml").open("a") as file:
        file.write("# a comment that stays\n")
    lab.up(CONFIGURED)
    before = lab.checkpoint.read_bytes()
    config = (lab.dir / "Pulumi.dev.yaml").read_text()
    monkeypatch.setenv("DEPLOYER_NEW_PASSPHRASE", "battery staple")
    change_keeper(lab.stack(), "passphrase")
    after = (lab.dir / "Pulumi.dev.yaml").read_text()
    assert "# a comment that stays" in after and not set(ciphertexts(json.loads(before))) & set(
        ciphertexts(json.loads(lab.checkpoint.read_bytes()))
    )
    assert "hush" not in after and yaml.safe_load(after)["config"].keys() == yaml.safe_load(config)["config"].keys()
    (lab.dir / "Pulumi.dev.yaml").write_text(config)  # as if it had been killed before the last step
    change_keeper(lab.stack(), "passphrase")
    monkeypatch.setenv(VARIABLE, "battery staple")
    monkeypatch.delenv("DEPLOYER_NEW_PASSPHRASE")
    assert lab.up().summary.keys() == {"same"}
    assert lab.files()["a.txt"] == "hush-hush-hush"


# --- F7: previews decrypt nothing


@pytest.mark.parametrize("phrase", [None, "wrong", ""])
def test_previews_ask_for_no_passphrase(phrase: str | None, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: whoever may preview could decrypt production's secrets."""
    configured(lab)
    lab.up(CONFIGURED)
    if phrase is None:
        monkeypatch.delenv(VARIABLE)
    else:
        monkeypatch.setenv(VARIABLE, phrase)
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *_: pytest.fail("a preview derives no key"))
    monkeypatch.setattr(Crypter, "decrypt", lambda *_: pytest.fail("a preview decrypts nothing"))
    by_passphrase._key.cache_clear()
    plan = lab.preview()
    assert plan.changes == () and plan.outputs == {"n": "[secret]", "o": "[secret]", "shown": "me"}
    operations = {operation.name: operation for operation in plan.operations}
    assert operations["a"].not_compared == ("content",) and operations["a"].old_inputs["content"] == "[secret]"
    assert lab.engine().refresh(lab.stack(), dry_run=True) == ()
    assert len(lab.engine().export(lab.stack())["deployment"]["resources"]) == len(lab.resources())
    changed = lab.preview(CONFIGURED.replace("seen", "x").replace('config.get("plain")', '"other"'))
    assert [(each.name, each.op, dict(each.detailed_diff)) for each in changed.changes] == [
        ("a", "update", {"labels": "update"})
    ]
    new = lab.preview(CONFIGURED + 'File("c", content=secret)')
    assert [(each.name, each.op) for each in new.changes] == [("c", "create")]


def test_what_a_preview_says_of_a_secret_that_goes_or_is_replaced(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: what is known without decryption is still told."""
    lab.up('File("a", content="x", secret=pulumi.Output.secret("hush-hush"), labels=[pulumi.Output.secret("one")])')
    monkeypatch.delenv(VARIABLE)
    gone = lab.preview('File("a", content="x", labels=[pulumi.Output.secret("one")])')
    assert [dict(each.detailed_diff) for each in gone.changes] == [{"secret": "delete"}]
    kept = lab.preview('File("a", content="x", secret=pulumi.Output.secret("other"), labels=["one"])')
    assert kept.changes == () and kept.operations[-1].not_compared == ("labels[0]", "secret")
    more = lab.preview('File("a", content="y", secret=pulumi.Output.secret("other"), labels=["one", "two"])')
    assert [dict(each.detailed_diff) for each in more.changes] == [{"content": "update", "labels": "update"}]


def test_previews_read_what_a_killed_run_left(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: a journal is not decrypted either."""
    lab.up(TWICE)
    store = StackStore(stack_files(lab.stack()), read_keys(lab.stack()))
    opened = store.open(fold=True)
    journal = store.begin(opened)
    state = opened.snapshot.resources()[-1]
    journal.sync(journal.append(End(None, add=state)))
    monkeypatch.delenv(VARIABLE)
    exported = lab.engine().export(lab.stack())["deployment"]
    assert set(ciphertexts(exported)) == set(ciphertexts(lab.deployment()))
    assert exported["secrets_providers"] == lab.deployment()["secrets_providers"]


def test_plugins_get_no_secret_in_a_preview(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: the same for a provider that is an executable, and one whose configuration is secret is not asked."""
    configured(lab)
    lab.install_plugin()
    program = 'config = pulumi.Config()\nFile("a", content=config.require_secret("token"))\n'
    lab.up(program)
    monkeypatch.delenv(VARIABLE)
    plan = lab.preview()
    assert plan.changes == () and plan.operations[-1].not_compared == ("content",)


def test_a_provider_with_secret_configuration_is_not_asked_in_a_preview(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F7: a provider would log in with a placeholder."""
    configured(lab, secret_root=True)
    lab.up('File("a", content="x")')
    (lab.root / "log").unlink()
    monkeypatch.delenv(VARIABLE)
    plan = lab.preview()
    assert plan.changes == () and plan.operations[-1].not_compared == ("the configuration of its provider",)
    assert not (lab.root / "log").exists()
    assert [each.op for each in lab.preview('File("a", content="x"); File("b")').changes] == ["create"]


def test_references_to_other_stacks_are_not_decrypted_in_a_preview(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: a stack reference gave a preview the other stack's secrets."""
    lab.up(TWICE)
    other = StackRef(lab.project(), "next")
    lab.program('pulumi.export("theirs", pulumi.StackReference("dev").require_output("hidden"))')
    monkeypatch.delenv(VARIABLE)
    plan = lab.engine().preview(other)
    assert plan.outputs == {"theirs": "[secret]"}


def test_a_program_that_needs_a_secret_at_once_is_told_why_it_fails(lab: Lab) -> None:
    """F7: plain `require` gives a placeholder in a preview."""
    configured(lab)
    with pytest.raises(EngineFailed, match="read it with require_secret"):
        lab.preview('int(pulumi.Config().require("number"))')


# --- F30: equality does not show


def test_equal_secrets_have_different_ciphertexts_and_keep_them(lab: Lab) -> None:
    """F30: `"SAME"` twice gave one ciphertext twice."""
    lab.up(TWICE)
    first = ciphertexts(lab.deployment())
    assert len(first) == len(set(first)) >= 6
    assert len({each.split(":")[1] for each in first}) == len(first)
    lab.up()
    assert sorted(ciphertexts(lab.deployment())) == sorted(first)
    lab.up(TWICE.replace('File("b", content=pulumi.Output.secret("the same text"))', 'File("b", content="x")'))
    later = ciphertexts(lab.deployment())
    assert set(later) < set(first)
    for folder in (lab.dir / ".pulumi" / "history").rglob("*.checkpoint.json"):
        found = ciphertexts(json.loads(folder.read_bytes()))
        assert len(found) == len(set(found))


def test_a_ciphertext_of_another_place_is_no_oracle() -> None:
    """F30: a crypter remembers nothing."""
    crypter = Crypter(b"k" * 32)
    assert len({crypter.encrypt("x") for _ in range(10)}) == 10
    with pytest.raises(WrongKey):
        Crypter(b"q" * 32).decrypt(crypter.encrypt("x"))
    for bad in ("", "v1:x", "v2:a:b", "v1:***:***", "v1::"):
        with pytest.raises((Corrupt, WrongKey)):
            crypter.decrypt(bad)
    assert crypter_of("x", new_salt("y")[0]) is None
    for bad in ("", "v1:", "v1:$$:v1:a:b", "v2:AAAA:v1:a:b", "v1:AAAA:"):
        with pytest.raises(Corrupt):
            crypter_of("x", bad)


# --- F31: secrets in clear


def test_an_output_in_clear_is_refused_before_anything_is_done(lab: Lab) -> None:
    """F31: `Config.get("token")` of a `secure:` value went to the state in clear."""
    configured(lab)
    program = 'pulumi.export("token", "Bearer " + pulumi.Config().require("token"))\nFile("a")'
    with pytest.raises(Refused, match=r"the output token holds the value of secret configuration in clear"):
        lab.preview(program)
    with pytest.raises(Refused, match=r"of the secret configuration demo:token in clear.*pulumi\.Output\.secret"):
        lab.up()
    assert "token" not in next(doc for doc in lab.resources() if doc["type"] == "pulumi:pulumi:Stack").get(
        "outputs", {}
    )
    for file in (lab.dir / ".pulumi").rglob("*"):
        assert not file.is_file() or b"hush" not in file.read_bytes(), file


@pytest.mark.parametrize(
    "output",
    [
        '"prefix hush-hush-hush"',
        '{"a": [{"b": config.require("token")}]}',
        '__import__("base64").b64encode(b"me:" + config.require("token").encode()).decode()',
        '__import__("os").environ["AWS_SECRET_ACCESS_KEY"]',
    ],
)
def test_outputs_in_other_forms_are_refused(output: str, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: nested, encoded, and of the environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCY")
    configured(lab)
    with pytest.raises(Refused, match="in clear"):
        lab.up(f'config = pulumi.Config()\npulumi.export("x", {output})')


def test_inputs_in_clear_are_kept_as_secrets(lab: Lab) -> None:
    """F31: a resource of another provider that is given a secret in clear keeps it encrypted."""
    configured(lab)
    lab.up('t = pulumi.Config().require("token")\nFile("a", content=t, labels=["x", "a " + t])')
    warnings = [event.message for event in lab.events if isinstance(event, Diagnostic)]
    assert [each for each in warnings if "the input content holds the value of the secret configuration" in each]
    assert lab.files() == {"a.txt": "hush-hush-hush"}
    for file in (lab.dir / ".pulumi").rglob("*"):
        assert not file.is_file() or b"hush" not in file.read_bytes(), file
    assert lab.up().summary.keys() == {"same"}


def test_names_in_clear_are_refused(lab: Lab) -> None:
    """F31: names of resources are in clear everywhere."""
    configured(lab)
    with pytest.raises((Refused, EngineFailed), match="the name of a resource holds the value of"):
        lab.up('File("x-" + pulumi.Config().require("token"))')


@pytest.mark.parametrize(
    "program",
    [
        'raise RuntimeError("no " + pulumi.Config().require("token"))',
        'raise SystemExit(pulumi.Config().require("token"))',
        'raise pulumi.RunError(pulumi.Config().require("token"))',
        'File("a", content=pulumi.Config().require_secret("token"), name="../../" + pulumi.Config().require("plain"))\n'
        'pulumi.Config().require_secret("token").apply(lambda text: 1 / 0 if text else text)\nint("hush-hush-hush")',
    ],
)
def test_errors_and_messages_of_the_program_are_masked(program: str, lab: Lab) -> None:
    """F31: exceptions of the program show it."""
    configured(lab)
    with pytest.raises(DeployerError) as failed:
        lab.up(program)
    assert "hush" not in str(failed.value)


def test_what_the_program_prints_is_masked(lab: Lab) -> None:
    """F31: standard output, standard error, and the SDK's log."""
    configured(lab)
    lab.up(
        """
        import sys
        t = pulumi.Config().require("token")
        print("it is", t)
        print({"t": t}, file=sys.stderr)
        pulumi.log.info("log " + t)
        """
    )
    assert "hush" not in repr(lab.events)
    printed = [event.text for event in lab.events if isinstance(event, ProgramOutput)]
    assert printed == ["it is [secret]", "{'t': '[secret]'}"]
    assert masking.masked("hush-hush-hush") == "hush-hush-hush"  # the run is over


def test_a_providers_words_are_masked(lab: Lab) -> None:
    """F31: what a provider says of a failure holds what it was given."""
    configured(lab)
    with pytest.raises(EngineFailed) as failed:
        lab.up('File("a", name=pulumi.Config().require_secret("token"), fail="create")')
    assert "hush" not in str(failed.value) and "the disk refuses to create [secret].txt" in str(failed.value)


def test_the_history_has_no_secret_configuration(lab: Lab) -> None:
    """F31: a setting in clear that holds the secret too is masked in the record of the run."""
    configured(lab)
    document = yaml.safe_load((lab.dir / "Pulumi.dev.yaml").read_text())
    document["config"]["demo:url"] = "https://me:hush-hush-hush@example.com"
    (lab.dir / "Pulumi.dev.yaml").write_text(yaml.safe_dump(document))
    lab.up('File("a")')
    for file in (lab.dir / ".pulumi").rglob("*"):
        assert not file.is_file() or b"hush" not in file.read_bytes(), file


def test_a_stack_that_another_run_holds_is_not_given_another_key(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: rotation takes the stack's lock, and knows what it cannot do."""
    lab.up(TWICE)
    monkeypatch.setenv("DEPLOYER_NEW_PASSPHRASE", "battery staple")
    code = (
        "import sys; from pathlib import Path; from deployer.engine import StackRef, read_project; "
        "from deployer.engine.persistence.rekey import change_keeper; "
        "change_keeper(StackRef(read_project(Path(sys.argv[1])), 'dev'), 'passphrase')"
    )
    before = lab.checkpoint.read_bytes()
    with locked(stack_files(lab.stack())):
        done = subprocess.run([sys.executable, "-c", code, str(lab.dir)], capture_output=True, text=True, check=False)
    assert done.returncode and Conflict.__name__ in done.stderr
    with pytest.raises(Refused, match="this engine does not keep secrets by gcpkms"):
        change_keeper(lab.stack(), "gcpkms://projects/x")
    assert lab.checkpoint.read_bytes() == before


def test_an_import_that_shows_secrets_is_encrypted(lab: Lab) -> None:
    """F31: `pulumi stack export --show-secrets` has them in clear, and they went into the state so."""
    lab.up(TWICE)
    exported = json.loads(json.dumps(lab.engine().export(lab.stack())))

    def shown(value: Any) -> Any:
        if isinstance(value, dict) and "ciphertext" in value:
            return {key: item for key, item in value.items() if key != "ciphertext"} | {"plaintext": '"the same text"'}
        if isinstance(value, dict):
            return {key: shown(item) for key, item in value.items()}
        return [shown(item) for item in value] if isinstance(value, list) else value

    lab.engine().restore(lab.stack(), shown(exported))
    assert b"the same text" not in lab.checkpoint.read_bytes()
    assert lab.up().summary.keys() == {"same"}


@pytest.mark.parametrize(
    "secret", [{"ciphertext": 7}, {"ciphertext": None}, {}, {"plaintext": "{"}, {"plaintext": 7}, {"ciphertext": "x"}]
)
def test_malformed_secrets_of_a_state_are_told(secret: dict[str, Any], lab: Lab) -> None:
    """F7: a state is anybody's text."""
    lab.up(TWICE)
    document = json.loads(lab.checkpoint.read_bytes())
    for resource in document["checkpoint"]["latest"]["resources"]:
        if resource["urn"].endswith("::a"):
            resource["inputs"]["content"] = {
                "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", **secret
            }  # fmt: skip
    lab.checkpoint.write_text(json.dumps(document))
    with pytest.raises((Corrupt, WrongKey)):
        lab.engine().up(lab.stack())


def test_a_part_of_a_secret_may_stand_elsewhere(lab: Lab) -> None:
    """F31: a host in a secret object is masked, and does not make an output in clear an error."""
    lab.up('File("a", content="x", secret=pulumi.Output.secret({"host": "db.example.com", "password": "hush-hush"}))')
    result = lab.up(
        """
        File("a", content="x", secret=pulumi.Output.secret({"host": "db.example.com", "password": "hush-hush"}))
        pulumi.export("host", "db.example.com")
        """
    )
    assert result.outputs == {"host": "db.example.com"}
