"""Every call that commands make on AWS is allowed by the policies that `doctor --write-policy` writes for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.iam.policy_files import PolicyRole, policies
from deployer.specs import load_lake
from tests.cli.conftest import Deployer
from tests.projects import table
from tests.stacks.conftest import MakeProject, bucket_of
from tests.stacks.lakes import ACCOUNT, REGION, deploying
from tests.stacks.policies import Call, is_allowed
from tests.stacks.recording import own, recording
from tests.stacks.test_aws import PROD, SERVICES
from tests.stacks.test_emr import change

pytestmark = pytest.mark.full


def refused(calls: list[Call], documents: list[object]) -> list[str]:
    return sorted(name for name, call in own(calls).items() if not is_allowed(call, documents))  # type: ignore[arg-type]


def lake_of(project: Path) -> LakeOnAws:
    return LakeOnAws.of(load_lake(project, project / "specs", "dev").instance, REGION, ACCOUNT)


def test_what_up_and_preview_ask_for(
    on_aws: MakeProject, deployer: Deployer, aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "x")
    project = on_aws(PROD, tables=table("flights", "delay: int32", more=SERVICES))
    lake = lake_of(project)
    written = policies(lake)
    always = deploying(lake)
    first = [*always, written["new-key"]]
    previewing = [document for name, document in written.items() if name.startswith("preview")]
    with recording(aws, lake) as (url, calls):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        ran = deployer("up", "--yes")
        assert ran.code == 0, ran.err
        assert len({each.action for each in calls}) > 60
        assert refused(calls, [*first]) == []
        assert refused(calls, [*always]) == [
            f"kms:CreateKey * {sorted(_asked_of_key(calls))}",
            f"kms:TagResource {lake.arn('kms', 'key/new')} {sorted(_asked_of_key(calls))}",
        ]

        calls.clear()
        assert deployer("preview", "--exit-code").code == 0
        assert calls and refused(calls, [*previewing]) == []

        calls.clear()
        change(project, ("idle_minutes: 60", "idle_minutes: 50"), ("team: data", "team: science"))
        ran = deployer("up", "--yes")
        assert ran.code == 0, ran.err
        assert refused(calls, [*always]) == []

        calls.clear()
        held = [f"bucket/{bucket_of(project)}", "table/air.flights", "key/demo", f"state-table/{table_of(lake)}"]
        gone = deployer("destroy", "--yes", *(f"--allow-destroy={name}" for name in held))
        assert gone.code == 0, gone.err
        assert refused(calls, [*always]) == []


def table_of(lake: LakeOnAws) -> str:
    return lake.table_arn.rpartition("/")[2]


def _asked_of_key(calls: list[Call]) -> list[str]:
    return [*next(each.context for each in calls if each.action == "kms:CreateKey")]


def test_the_previewing_role_only_reads(on_aws: MakeProject) -> None:
    """No call that writes, tags or hands a role on is in it, and no pattern that such a call fits."""
    project = on_aws(PROD)
    found = policies(lake_of(project), [PolicyRole.PREVIEW])
    actions = {
        action
        for document in found.values()
        for statement in document["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    verbs = {action.partition(":")[2].partition("*")[0] for action in actions}
    reads = ("BatchGet", "Decrypt", "Describe", "Get", "List", "Query", "Scan", "View")
    assert verbs and all(verb.startswith(reads) for verb in verbs), verbs
