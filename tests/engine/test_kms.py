"""Secrets whose key is in AWS KMS, as the Pulumi CLI keeps them: `secretsprovider: awskms://…`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from moto import mock_aws

from deployer.engine.persistence.rekey import change_keeper
from deployer.engine.secrets.aws_kms import KmsUrl, parse_kms
from deployer.engine.secrets.crypter import Crypter
from deployer.errors import Corrupt, DeployerError, InvalidInput, Refused
from tests.engine.conftest import Lab, lab_in

pytestmark = pytest.mark.full

REGION = "eu-central-1"
ARN = f"arn:aws:kms:{REGION}:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
PROGRAM = """
File("a", content=pulumi.Output.secret("hush-hush"))
pulumi.export("hidden", pulumi.Output.secret("hush-hush"))
"""


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of KMS, where there is a key called `alias/lake`."""
    for name, value in {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "kms-test-secret-key"}.items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "PULUMI_CONFIG_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        client: Any = boto3.client("kms", region_name=REGION)
        key = client.create_key()["KeyMetadata"]["KeyId"]
        client.create_alias(AliasName="alias/lake", TargetKeyId=key)
        yield client


def lab_by(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    (folder / "Pulumi.dev.yaml").write_text(f"# the lake's key\nsecretsprovider: {url}\n")
    return lab_in(folder)


@pytest.mark.parametrize("query", ["", "&awssdk=v2", "&context_lake=nyc&context_env=prod"])
def test_a_stack_keeps_its_secrets_by_a_key_in_kms(
    query: str, kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"awskms://alias/lake?region={REGION}{query}"
    lab = lab_by(tmp_path, url, monkeypatch)
    lab.up(PROGRAM)
    text = (tmp_path / "Pulumi.dev.yaml").read_text()
    config = yaml.safe_load(text)
    assert config["secretsprovider"] == url and "# the lake's key" in text and "encryptionsalt" not in config
    state = lab.deployment()["secrets_providers"]
    assert state == {"type": "cloud", "state": {"url": url, "encryptedkey": config["encryptedkey"]}}
    # as the Go CDK's keeper has it: KMS decrypts the data key, by which values are `v1:nonce:ciphertext`
    context = {"lake": "nyc", "env": "prod"} if "context_" in query else {}
    blob = base64.b64decode(config["encryptedkey"])
    key = kms.decrypt(CiphertextBlob=blob, **({"EncryptionContext": context} if context else {}))["Plaintext"]
    stored = lab.resource("a")["inputs"]["content"]["ciphertext"]
    assert len(key) == 32 and json.loads(Crypter(key).decrypt(stored)) == "hush-hush"
    assert lab.up().summary.keys() == {"same"} and lab.resource("a")["inputs"]["content"]["ciphertext"] == stored
    assert (tmp_path / "Pulumi.dev.yaml").read_text() == text


def test_configuration_is_decrypted_and_previews_ask_no_key(
    kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"awskms://alias/lake?region={REGION}"
    lab = lab_by(tmp_path, url, monkeypatch)
    lab.up(PROGRAM)
    config = yaml.safe_load((tmp_path / "Pulumi.dev.yaml").read_text())
    key = kms.decrypt(CiphertextBlob=base64.b64decode(config["encryptedkey"]))["Plaintext"]
    config["config"] = {"demo:token": {"secure": Crypter(key).encrypt("configured")}}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(config))
    lab.up('File("a", content=pulumi.Config().require_secret("token"))')
    assert lab.files() == {"a.txt": "configured"}
    monkeypatch.setattr(boto3.session, "Session", lambda **_: pytest.fail("a preview asks AWS for no key"))
    assert lab.preview().changes == ()


def test_a_key_that_cannot_be_had_is_refused_before_anything_is_done(
    kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_by(tmp_path, f"awskms://alias/none?region={REGION}", monkeypatch)
    with pytest.raises(Refused, match=r"KMS does not encrypt the stack's data key: NotFoundException.*kms:Encrypt"):
        lab.up(PROGRAM)
    assert lab.files() == {}
    lab = lab_by(tmp_path, f"awskms://alias/lake?region={REGION}", monkeypatch)
    lab.up(PROGRAM)
    text = (tmp_path / "Pulumi.dev.yaml").read_text()
    for found, error, words in (
        ("bm8ga2V5IG9mIEtNUyBhdCBhbGwgYXQgYWxsIGF0IGFsbA==", Refused, "KMS does not decrypt the stack's data key"),
        ("not-base64!", Corrupt, "`encryptedkey` is not base64"),
    ):
        (tmp_path / "Pulumi.dev.yaml").write_text(text.replace(yaml.safe_load(text)["encryptedkey"], found))
        with pytest.raises(error, match=words):
            lab.up('File("a", content=pulumi.Output.secret("another"))')


def test_another_encryption_context_is_another_key(kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = lab_by(tmp_path, f"awskms://alias/lake?region={REGION}&context_lake=nyc", monkeypatch)
    lab.up(PROGRAM)
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("context_lake=nyc", "context_lake=other"))
    state = lab.checkpoint
    state.write_text(state.read_text().replace("context_lake=nyc", "context_lake=other"))
    with pytest.raises(Refused, match="KMS does not decrypt the stack's data key"):
        lab.up()


def test_a_stack_moves_from_a_passphrase_to_kms_and_back(
    kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_in(tmp_path)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "correct horse")
    lab.up(PROGRAM)
    change_keeper(lab.stack(), f"awskms://alias/lake?region={REGION}")
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    config = yaml.safe_load((tmp_path / "Pulumi.dev.yaml").read_text())
    assert config.keys() == {"secretsprovider", "encryptedkey"}
    assert lab.up().summary.keys() == {"same"}
    monkeypatch.setenv("DEPLOYER_NEW_PASSPHRASE", "battery staple")
    change_keeper(lab.stack(), "passphrase")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "battery staple")
    assert yaml.safe_load((tmp_path / "Pulumi.dev.yaml").read_text()).keys() == {"encryptionsalt"}
    assert lab.up().summary.keys() == {"same"}


def test_a_provider_that_is_only_named_takes_over_what_is_stored(
    kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_in(tmp_path)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "correct horse")
    lab.up(PROGRAM)
    (tmp_path / "Pulumi.dev.yaml").write_text(f"secretsprovider: awskms://alias/lake?region={REGION}\n")
    lab.up()
    monkeypatch.delenv("PULUMI_CONFIG_PASSPHRASE")
    assert lab.deployment()["secrets_providers"]["type"] == "cloud"
    assert lab.up().summary.keys() == {"same"}


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("awskms://alias/lake?region=eu-west-1", KmsUrl("alias/lake", "eu-west-1")),
        ("awskms:///alias/lake", KmsUrl("alias/lake")),
        ("awskms://1234abcd-12ab-34cd-56ef-1234567890ab", KmsUrl("1234abcd-12ab-34cd-56ef-1234567890ab")),
        (f"awskms:///{ARN}", KmsUrl(ARN, REGION)),
        (f"awskms:///{ARN}?region=eu-west-1&awssdk=v2", KmsUrl(ARN, "eu-west-1")),
        (
            "awskms://alias/lake?profile=prod&fips=true&dualstack=false&context_a=b%20c&context_d=",
            KmsUrl("alias/lake", None, "prod", ("fips",), {"a": "b c", "d": ""}),
        ),
    ],
)
def test_urls_of_keys(url: str, parsed: KmsUrl) -> None:
    assert parse_kms(url) == parsed


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("awskms://", InvalidInput),
        ("awskms://alias/lake#x", InvalidInput),
        ("awskms://alias/la ke", InvalidInput),
        (f"awskms://{ARN}", InvalidInput),
        ("awskms://alias/lake?region=a&region=b", InvalidInput),
        ("awskms://alias/lake?region", InvalidInput),
        ("awskms://alias/lake?endpoint=http://evil.example.com", Refused),
        ("awskms://alias/lake?role=arn:aws:iam::1:role/x", Refused),
        ("awskms://alias/lake?anonymous=true", Refused),
        ("gcpkms://projects/x", Refused),
        ("hashivault://x", Refused),
        ("azurekeyvault://x", Refused),
    ],
)
def test_urls_that_are_refused(
    url: str, error: type[DeployerError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = lab_by(tmp_path, f'"{url}"', monkeypatch)
    lab.program(PROGRAM)
    with pytest.raises(error):
        lab.engine().up(lab.stack())
    with pytest.raises(error):
        lab.engine().preview(lab.stack())


def test_a_key_that_only_the_state_names_stores_nothing(
    kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F7: whoever writes the state names a key of their own, by which they read what is stored next."""
    lab = lab_by(tmp_path, f"awskms://alias/lake?region={REGION}", monkeypatch)
    lab.up(PROGRAM)
    (tmp_path / "Pulumi.dev.yaml").unlink()
    with pytest.raises(Refused, match="the stack's configuration does not name that key"):
        lab.up('File("b", content=pulumi.Output.secret("new"))')
    assert "b.txt" not in lab.files()
