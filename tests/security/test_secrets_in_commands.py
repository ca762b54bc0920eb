"""F4, F7, F31: secrets as the commands show, keep and refuse them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from deployer.compute.jobs.status import JobStatus, read_status, write_status
from deployer.engine.secrets import passphrase
from deployer.engine.secrets.passphrase import new_salt
from deployer.errors import DeployerError, InvalidInput
from deployer.platform.text import masking
from deployer.runs.records import find_run, queue_run, start_run
from deployer.state.model.services import Figures
from deployer.tables.ingest.request import IngestRequest
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, REPOSITORY, make_project, table
from tests.tables.lakes import Lake

VARIABLE = "PULUMI_CONFIG_PASSPHRASE"
TOKEN = "hush-hush-hush"
FILES = """
class File(pulumi.CustomResource):
    def __init__(self, name, **props):
        super().__init__("files:index:File", name, {"name": name, **props})

File("a", content=pulumi.Config("demo").require_secret("token"))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table, and with a secret in the stack's configuration."""
    for name in ("PULUMI_CONFIG_PASSPHRASE_FILE", "PULUMI_BACKEND_URL", "DEPLOYER_NEW_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(VARIABLE, "correct horse")
    monkeypatch.setattr(passphrase, "_ROUNDS", 10)
    passphrase._key.cache_clear()
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "planes.yaml": table("planes")})
    salt, crypter = new_salt("correct horse")
    config = {"encryptionsalt": salt, "config": {"demo:token": {"secure": crypter.encrypt(TOKEN)}}}
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump(config))
    monkeypatch.chdir(folder)
    return folder


def program(project: Path, text: str) -> None:
    with (project / "stacks" / "__main__.py").open("a") as file:
        file.write(f"\nimport pulumi\n\n{text}\n")


def nothing_holds(folder: Path, secret: str) -> bool:
    return not [each for each in folder.rglob("*") if each.is_file() and secret.encode() in each.read_bytes()]


def test_an_output_in_clear_is_refused_while_planning(project: Path, deployer: Deployer) -> None:
    """F31: nothing is applied, by a preview of the program that decrypts nothing."""
    program(project, 'pulumi.export("token", pulumi.Config("demo").require("token"))')
    for arguments in (("preview",), ("up", "--yes"), ("preview", "--json")):
        ran = deployer(*arguments)
        assert (
            ran.code == 3 and "the output token holds the value of secret configuration in clear" in ran.err + ran.out
        )
    assert not (project / "lakes").exists() and TOKEN not in ran.err


def test_a_secret_in_what_declares_a_table_is_refused(project: Path, deployer: Deployer) -> None:
    """F31: a lake's log keeps in clear what declares it."""
    program(
        project,
        """
from dataclasses import replace
from deployer.components import project_lake
from deployer.provider.sdk import Table
lake = project_lake()
spec = replace(lake.tables[0], name="others", description="by " + pulumi.Config("demo").require("token"))
Table(lake.instance, spec)
""",
    )
    for arguments in (("preview",), ("up", "--yes")):
        ran = deployer(*arguments)
        assert (
            ran.code
            and "description: it is secret, or holds a secret, and a lake stores its specs without encryption"
            in ran.err
        )
    assert nothing_holds(project, TOKEN)


def test_a_plan_tells_of_secrets_that_it_cannot_compare(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F7: without the passphrase, a secret of another provider's resource may change; all else is told."""
    folder = project / "bin"
    folder.mkdir()
    script = folder / "pulumi-resource-files"
    script.write_text(
        f"#!/bin/sh\nexport FILES_ROOT='{project / 'root'}' PYTHONPATH='{REPOSITORY}'\n"
        f"exec '{sys.executable}' -m tests.engine.provider_files \"$@\"\n"
    )
    script.chmod(0o755)
    settings = yaml.safe_load((project / "Pulumi.yaml").read_text())
    settings["plugins"]["providers"].append({"name": "files", "path": "bin"})
    (project / "Pulumi.yaml").write_text(yaml.safe_dump(settings))
    program(project, FILES)
    assert deployer("up", "--yes").code == 0
    assert (project / "root" / "files" / "a.txt").read_text() == TOKEN and nothing_holds(project / ".pulumi", TOKEN)
    monkeypatch.delenv(VARIABLE)
    plan = deployer("preview", "--exit-code")
    assert plan.code == 2
    assert "may change files:index:File a a preview decrypts nothing, so content cannot be compared" in plan.out
    assert deployer("preview", "--json").json["foreign"] == [
        {
            "address": "files:index:File a",
            "action": "may change",
            "detail": "a preview decrypts nothing, so content cannot be compared",
        }
    ]
    assert deployer("drift").code == 0
    assert deployer("stack", "export", "dev.json").code == 0
    assert deployer("stack", "import", "dev.json", "--yes").code == 0
    refused = deployer("up", "--yes")
    assert refused.code == 3 and "no passphrase is set" in refused.err


def test_the_key_of_a_stack_is_changed_by_a_command(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F7: for a stack whose secrets were stored with an empty passphrase, or with one that others know."""
    program(project, 'pulumi.export("token", pulumi.Config("demo").require_secret("token"))')
    assert deployer("up", "--yes").code == 0
    asked = deployer("stack", "change-secrets-provider", "passphrase")
    assert asked.code == 1 and "DEPLOYER_NEW_PASSPHRASE" in asked.err
    monkeypatch.setenv("DEPLOYER_NEW_PASSPHRASE", "battery staple")
    done = deployer("stack", "change-secrets-provider", "passphrase")
    assert done.code == 0 and "the secrets of stack dev have a new key" in done.out
    monkeypatch.setenv(VARIABLE, "battery staple")
    monkeypatch.delenv("DEPLOYER_NEW_PASSPHRASE")
    assert deployer("up", "--yes").code == 0
    refused = deployer("stack", "change-secrets-provider", "hashivault://x")
    assert refused.code == 3 and "does not keep secrets by hashivault" in refused.err


def test_what_commands_print_is_masked(project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: text, JSON, errors, and what the program prints."""
    specs = project / "specs" / "planes.yaml"
    specs.write_text(specs.read_text() + "description: by token-of-the-catalog\n")
    program(project, 'print("it is", pulumi.Config("demo").require("token"), "token-of-the-catalog")')
    assert deployer("up", "--yes", "--json").code == 0
    monkeypatch.setenv("DEPLOYER_TOKEN_CATALOG", "token-of-the-catalog")
    specs.write_text(specs.read_text() + "tags: {by: token-of-the-catalog}\n")
    for arguments in (
        ("preview",),
        ("preview", "--format", "markdown"),
        ("preview", "--format", "html"),
        ("preview", "--json"),
        ("up", "--yes"),
        ("validate",),
        ("describe", "planes"),
        ("describe", "planes", "--json"),
        ("query", "token-of-the-catalog"),
        ("report", "--html", "report.html"),
    ):
        ran = deployer(*arguments)
        assert "token-of-the-catalog" not in ran.out + ran.err and TOKEN not in ran.out + ran.err, arguments
        assert ran.code in (0, 1) and (not ran.code or arguments[0] in ("preview", "up", "query"))
    assert "token-of-the-catalog" not in (project / "report.html").read_text()
    assert ("[secret]" in deployer("describe", "planes").out, deployer("describe", "planes", "--json").code) == (
        True,
        0,
    )


def test_a_plan_that_holds_a_secret_is_not_saved(
    project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F31: a mask in it would be applied, and reviewers get the file."""
    assert deployer("up", "--yes").code == 0
    monkeypatch.setenv("DEPLOYER_TOKEN_CATALOG", "token-of-the-catalog")
    specs = project / "specs" / "planes.yaml"
    specs.write_text(specs.read_text() + "description: by token-of-the-catalog\n")
    saved = deployer("preview", "--out", "plan.json")
    assert saved.code == 3 and "holds the value of the environment variable DEPLOYER_TOKEN_CATALOG" in saved.err
    assert not (project / "plan.json").exists()


def test_rows_are_data(project: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: what is stored is given as it is stored: a mask in it would be a wrong value."""
    specs = project / "specs" / "planes.yaml"
    specs.write_text(table("planes", "note: string"))
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id,note\n1,token-of-the-catalog\n")
    assert deployer("ingest", "planes", "rows.csv").code == 0
    monkeypatch.setenv("DEPLOYER_TOKEN_CATALOG", "token-of-the-catalog")
    for arguments in (("--format", "csv"), ("--format", "json"), ("--json",)):
        assert "token-of-the-catalog" in deployer("query", "planes", *arguments).out


def test_records_of_runs_and_jobs_are_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: reasons and figures of runs are state, and a job on a cluster tells its error through an object."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session-token-of-aws")
    lake = Lake(tmp_path)
    table_id = lake.table().opened.entry.table_id
    run = queue_run(lake.store, table_id, "COMPACT", cause="on demand", needs_service=False)
    held = start_run(lake.store, table_id, run.run_id)
    after: Any = {"x": {"failure": "with session-token-of-aws"}}
    held.finish("FAILED", reason="said session-token-of-aws", figures=Figures(after=after))
    found = find_run(lake.store.table(table_id), run.run_id)
    assert (found.reason, found.figures.after) == ("said [secret]", {"x": {"failure": "with [secret]"}})
    write_status(
        lake.root, "key", JobStatus(error=DeployerError("said session-token-of-aws", where="session-token-of-aws"))
    )
    error = read_status(lake.root, "key").error
    assert error is not None and str(error) == "[secret]: said [secret]"
    assert nothing_holds(tmp_path, "session-token-of-aws")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("https://user:pass-word@example.com/a.csv", "https://example.com/a.csv"),
        ("s3://AKIAX:secret-key@bucket/a.csv", "s3://bucket/a.csv"),
        ("https://b.s3.amazonaws.com/a.csv?X-Amz-Signature=abcdef", "https://b.s3.amazonaws.com/a.csv"),
        ("s3://bucket/a.csv?X-Amz-Signature=abcdef", "s3://bucket/a.csv"),
        ("https://x.blob.core.windows.net/a.csv?sv=1&sig=abcdef", "https://x.blob.core.windows.net/a.csv"),
    ],
)
def test_addresses_of_loads_have_no_credentials(path: str, shown: str) -> None:
    """F31: they are arguments of jobs, and in messages and records."""
    requests: list[dict[str, Any]] = [{"paths": (path,)}, {"paths": ("a.csv",), "bad_rows": path}]
    for request in requests:
        with pytest.raises(InvalidInput) as refused:
            IngestRequest(**request)
        assert refused.value.where == shown and "abcdef" not in str(refused.value)


@pytest.mark.parametrize("path", ["a.csv", "s3://bucket/a?/token=1/*.csv", "s3://bucket/a@b.csv", "/x/y@z:1/a.csv"])
def test_plain_addresses_of_loads_are_taken(path: str) -> None:
    """F31: globs, partitions and file names may have such characters."""
    assert IngestRequest((path,)).paths == (path,)


def test_passwords_in_urls_of_the_environment_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """F31: proxies and package indexes."""
    monkeypatch.setenv("HTTPS_PROXY", "http://me:proxy%2Dpass-word@proxy:3128")
    with masking.scope():
        assert masking.masked("via http://me:proxy%2Dpass-word@proxy") == "via http://me:[secret]@proxy" or (
            "pass-word" not in masking.masked("proxy-pass-word")
        )
