"""Programs that declare lakes beside their own resources: the examples of docs/aws.md, applied to moto's server."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.engine import StackRef, choose_engine, read_project
from deployer.engine.providers.inprocess import InProcess
from deployer.provider.provider import LakeProvider
from deployer.provider.resources.run_context import Stores
from deployer.state import open_reader
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, REPOSITORY, make_project, table
from tests.stacks.conftest import MakeProject, bucket_of

pytestmark = pytest.mark.full

CLUSTERS = """\
clusters:
  - {name: nightly, kind: emr-serverless, release: emr-7.12.0}
  - {name: weekly, kind: emr, release: emr-7.12.0, instance_type: m7g.xlarge}
"""


def example(heading: str, number: int, page: str = "aws-program.md") -> str:
    """A program of a page's section."""
    text = re.split(rf"^#+ {heading}\n", (REPOSITORY / "docs" / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1
    ]
    found: list[str] = re.findall(r"```python\n(.*?)```", re.split(r"^##", text, flags=re.MULTILINE)[0], re.DOTALL)
    return found[number]


def run_by(project: Path, program: str) -> None:
    (project / "stacks" / "__main__.py").write_text(program, encoding="utf-8")


def resources(project: Path) -> dict[str, dict[str, Any]]:
    """By type and name."""
    file = project / ".pulumi" / "stacks" / "lakes" / "dev.json"
    found = json.loads(file.read_text())["checkpoint"]["latest"]["resources"]
    return {f"{each['type']} {each['urn'].rpartition('::')[2]}": each for each in found}


def test_the_program_of_init_is_the_one_of_the_page() -> None:
    ours = (REPOSITORY / "stacks" / "__main__.py").read_text(encoding="utf-8")
    assert ours.endswith(example("Write the Pulumi program", 0))


def test_a_lake_is_declared_beside_the_resources_of_the_program(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTERS + "tags: {team: data}\n")
    run_by(project, example("Write the Pulumi program", 1))
    shown = deployer("preview")
    assert shown.code == 0 and "create aws:glue/catalogDatabase:CatalogDatabase reports" in shown.out, shown.err
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err

    found = resources(project)
    of_type = {kind: [each for each in found if each.startswith(kind)] for kind in ("aws:s3/", "aws:kms/")}
    assert of_type == {"aws:s3/": [
        "aws:s3/bucket:Bucket company",
        *(each for each in found if each.startswith("aws:s3/bucketObjectv2:")),
    ], "aws:kms/": ["aws:kms/key:Key company"]}  # fmt: skip
    application = found["aws:emrserverless/application:Application application/nightly"]["inputs"]
    network = {key: application["networkConfiguration"][key] for key in ("subnetIds", "securityGroupIds")}
    assert network == {"subnetIds": ["subnet-0a", "subnet-0b"], "securityGroupIds": ["sg-0a"]}
    assert found["aws:cloudwatch/logGroup:LogGroup logs/nightly"]["inputs"]["retentionInDays"] == 7
    key = found["aws:kms/key:Key company"]["outputs"]["arn"]
    [state] = (each for name, each in found.items() if name.startswith("aws:dynamodb/"))
    assert state["inputs"]["serverSideEncryption"]["kmsKeyArn"] == key
    assert {"team": "data", "cost-centre": "4711", "deployer:instance": "demo"}.items() <= state["inputs"][
        "tags"
    ].items()
    role = found["aws:iam/role:Role jobs"]["outputs"]["arn"]
    outputs = found["pulumi:pulumi:Stack lakes-dev"]["outputs"]
    assert (outputs["clusters"]["nightly"]["role"], outputs["clusters"]["weekly"]["role"]) == (role, role)
    assert outputs["clusters"]["weekly"]["template"]["Instances"]["Ec2SubnetId"] == "subnet-0a"
    assert (outputs["bucket"], outputs["kms_key"]) == (bucket_of(project), key)
    reports = found["aws:glue/catalogDatabase:CatalogDatabase reports"]["inputs"]
    assert reports["description"] == f"Reports of s3://{bucket_of(project)}/demo"
    assert found["aws:iam/instanceProfile:InstanceProfile instances/weekly"]["inputs"]["role"] == "company-jobs"

    assert deployer("preview", "--exit-code").code == 0
    (project / "rows.csv").write_text("id,delay\n1,10\n2,20\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv", "--json").json["rows"] == 2


@pytest.mark.gate
def test_a_lake_on_a_disk_needs_no_types_of_aws(
    tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path / "new", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")})
    monkeypatch.chdir(project)
    without = "import sys\nsys.modules['pulumi_aws'] = None\n"  # as Python marks what is not there
    run_by(project, without + example("Declare", 0, "python.md"))
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    location = resources(project)["pulumi:pulumi:Stack lakes-dev"]["outputs"]["flights"]
    assert (project / "lakes" / "demo" / location).is_dir()
    assert deployer("preview", "--exit-code").code == 0


WITH = """
from deployer.components import Lake, LakeArgs, project_lake

spec = project_lake()
Lake(spec.instance.name, LakeArgs(spec, {arguments})).export()
"""


@pytest.mark.parametrize(
    ("specs", "arguments", "said"),
    [
        ("", "bucket='another'", "the program gives the lake the bucket another; write `root: s3://another/…`"),
        (
            "aws: {object_lock: {mode: governance, days: 7}}\n",
            "bucket=spec.instance.root.split('/')[2]",
            "aws.object_lock is a setting of the bucket, and the program gives the lake a bucket of its own",
        ),
        (
            "aws: {kms_key: managed}\n",
            "kms_key='arn:aws:kms:eu-central-1:123456789012:key/ours'",
            "the program gives the lake a KMS key, and the specs have another in aws.kms_key; leave one of them out",
        ),
    ],
    ids=["another bucket", "a setting of the bucket", "two keys"],
)
def test_arguments_that_contradict_the_specs_are_refused(
    specs: str, arguments: str, said: str, on_aws: MakeProject, deployer: Deployer
) -> None:
    project = on_aws(specs)
    run_by(project, WITH.format(arguments=arguments))
    ran = deployer("preview")
    assert (ran.code, said in ran.err) == (1, True), ran.err
    assert "Traceback" not in ran.err
    assert boto3.client("s3").list_buckets()["Buckets"] == []


def test_a_program_declares_several_lakes(on_aws: MakeProject) -> None:
    """With clusters and tables of the same names, each in a bucket of its own."""
    project = on_aws(CLUSTERS)
    other = f"{bucket_of(project)}-eu"
    instance = f"kind: Instance\nname: demo\nroot: s3://{other}/demo\n{CLUSTERS}"
    (project / "lakes" / "eu").mkdir(parents=True)
    (project / "lakes" / "eu" / "instance.yaml").write_text(instance, encoding="utf-8")
    (project / "lakes" / "eu" / "flights.yaml").write_text(table("flights", "gate: string"), encoding="utf-8")
    run_by(project, example("Several lakes", 0))
    stack = StackRef(read_project(project), "dev")
    stores = Stores(project)
    engine = choose_engine(stack.project, "embedded", {"lake": InProcess(LakeProvider(stores))})
    result = engine.up(stack)
    assert not [each for each in result.operations if each.op not in ("create", "read")]

    found = resources(project)
    assert {"lake:index:Table air.flights", "lake:index:Table eu/air.flights"} <= found.keys()
    on_aws_ = {each.partition(" ")[2] for each in found if each.startswith("aws:")}
    assert {
        "application/nightly",
        "application/eu/nightly",
        "role/weekly",
        "role/eu/weekly",
        "alarm/throttled/demo",
    } < on_aws_
    assert {"rule/eu/failed-runs/nightly", "job-code/eu/wheel", f"bucket/{other}", "budget/eu/demo"} < on_aws_
    for root in (f"s3://{bucket_of(project)}/demo", f"s3://{other}/demo"):
        with closing(open_reader(root)) as store:
            assert [entry.address for entry in store.instance().tables.values()] == ["table/air.flights"]
    stores.close()
    roots = [result.outputs[name] for name in ("root", "eu_root")]
    assert roots == [f"s3://{bucket_of(project)}/demo", f"s3://{other}/demo"]

    again = choose_engine(stack.project, "embedded", {"lake": InProcess(LakeProvider(Stores(project)))}).preview(stack)
    assert {each.op for each in again.operations} <= {"same", "refresh", "read"}
