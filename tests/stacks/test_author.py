"""F28: who committed to a lake on AWS is whom AWS knows, not what a variable says."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.state import create_store, open_store
from deployer.state.log.updates import RegisterTable
from deployer.state.model.entities import INSTANCE_LOG
from tests.cli.conftest import Deployer
from tests.stacks.conftest import MakeProject, bucket_of
from tests.state.samples import entry

pytestmark = pytest.mark.full


def authors(root: str) -> set[str]:
    return {each.author for each in open_store(root).log(INSTANCE_LOG)}


def test_the_author_is_the_callers_arn(
    on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F28: `LOGNAME=ceo deployer up` was recorded as by "ceo"."""
    monkeypatch.setenv("LOGNAME", "ceo")
    project = on_aws(tables="")
    assert deployer("up", "--yes").code == 0
    assert authors(f"s3://{bucket_of(project)}/demo") == {"arn:aws:sts::123456789012:user/moto"}


def test_without_an_answer_of_sts_the_author_is_marked(on_aws: MakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """F28: a name that the machine says is not taken for one that AWS says."""
    from deployer.platform.aws.session import aws_author

    monkeypatch.setenv("LOGNAME", "arn:aws:iam::123456789012:user/ceo")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert aws_author("eu-central-1") == "arn:aws:iam::123456789012:user/ceo (not verified by AWS)"


def test_a_lake_on_a_disk_has_the_local_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F28: there the author is self-declared, as the docs state."""
    monkeypatch.setenv("LOGNAME", "ceo")
    store = create_store(tmp_path)
    store.commit(INSTANCE_LOG, [RegisterTable(entry())])
    assert authors(str(tmp_path)) == {"ceo"}
