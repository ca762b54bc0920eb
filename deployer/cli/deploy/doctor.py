"""`deployer doctor`: what is missing or wrong for this project, each with its remedy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.app.doctor.aws import Aws
    from deployer.app.doctor.checks import Check, Finding, Result
    from deployer.app.doctor.project import Place
    from deployer.specs.model import Lake

FORMAT_VERSION = 1
_GROUPS = ("machine", "project", "lake", "aws")  #: in the order in which they are shown


def doctor(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Seconds that the checks may take.")
    ] = 30.0,
    write_policy: Annotated[
        Path | None,
        typer.Option(
            "--write-policy",
            metavar="FOLDER",
            help="Write the IAM policies of the roles that deploy and preview, and the boundary of the roles that the "
            "stack makes, to a folder, and check nothing.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Look for what is missing or wrong: this machine, the project, the lake, AWS. Each finding has its remedy.

    Checks run side by side. What does not concern the lake is not applicable. Changes nothing, and shows no credential.
    Exits with 1 when something is wrong; warnings are none.
    """
    from deployer.app.doctor.checks import Status, counts, run_checks
    from deployer.app.doctor.project import read_place
    from deployer.cli.console.output import print_json, stderr

    place = read_place(project, stack, specs)
    if write_policy is not None:
        return _write(place, write_policy, as_json)
    checks = _checks(place)
    console = stderr()
    if console.is_terminal and not as_json:
        with console.status("looking") as status:
            results = run_checks(checks, timeout, lambda names: status.update(f"waiting for {', '.join(names)}"))
    else:
        results = run_checks(checks, timeout)
    if as_json:
        print_json(_document(stack, results))
    else:
        _print(results)
    return 1 if counts(results)[Status.WRONG] else 0


def _write(place: Place, folder: Path, as_json: bool) -> int:
    from rich.text import Text

    from deployer.app.doctor.policies import write_policies
    from deployer.cli.console.output import print_json, stdout
    from deployer.compute.iam.policy_files import MOST_CHARACTERS

    written = write_policies(place, folder)
    if as_json:
        print_json({"format": FORMAT_VERSION, "policies": {str(path): size for path, size in written.items()}})
        return 0
    for path, size in written.items():
        stdout().print(Text(f"{path}: {size:,} of {MOST_CHARACTERS:,} characters"), soft_wrap=True)
    return 0


def _checks(place: Place) -> list[Check]:
    from deployer.app.doctor import machine
    from deployer.app.doctor.checks import Check
    from deployer.app.doctor.project import program

    project = place.workspace.project if place.workspace else None
    managed = place.workspace.values.get("aws", "all") if place.workspace else "all"
    unneeded = "" if place.is_on_s3 else "the root is not on S3"
    if not unneeded and managed == "none":
        unneeded = "deployer:aws is none"
    checks = [
        Check("machine", "python", machine.python),
        Check("machine", "deployer", machine.package),
        Check("machine", "packages", machine.packages),
        Check("machine", "java", machine.java),
        Check("machine", "pulumi-cli", lambda: machine.pulumi_cli(place.engine)),
        Check("machine", "lake-provider", lambda: machine.lake_provider(project, place.engine)),
        Check("project", "project", lambda: place.project),
        Check("project", "specs", lambda: place.specs),
        Check("project", "program", lambda: program(place)),
        Check("lake", "root", lambda: _root(place)),
        Check("aws", "aws-package", lambda: machine.aws_package(unneeded)),
        Check("aws", "aws-provider", lambda: machine.aws_provider(project, place.engine, unneeded)),
        *(_on_aws(place, managed) if place.is_on_s3 or place.keeps_state_on_s3 else _on_disk(place)),
    ]
    return sorted(checks, key=lambda check: _GROUPS.index(check.group))


def _root(place: Place) -> Finding:
    from deployer.app.doctor.checks import not_applicable
    from deployer.app.doctor.project import local_root

    if not place.root:
        return not_applicable("it is not known")
    return not_applicable("see `bucket`") if place.is_on_s3 else local_root(place.root)


_OF_AWS = ("credentials", "region", "identity", "s3", "dynamodb", "sts", "emr-serverless", "emr", "clock")
_OF_LAKE = ("bucket", "permissions", "job-roles", "quotas")


def _on_disk(place: Place) -> list[Check]:
    from deployer.app.doctor.checks import Check, not_applicable
    from deployer.app.doctor.project import pulumi_state, state_store

    why = "the root is not on S3" if place.root else "the root is not known"
    return [
        Check("project", "pulumi-state", lambda: pulumi_state(place)),
        Check("lake", "state-store", lambda: state_store(place.root)),
        *(Check("aws", name, lambda: not_applicable(why)) for name in (*_OF_AWS, *_OF_LAKE)),
    ]


def _on_aws(place: Place, managed: str) -> list[Check]:
    """Where the lake is on S3, or Pulumi's state alone."""
    from deployer.app.doctor import aws as of_aws
    from deployer.app.doctor import lake as of_lake
    from deployer.app.doctor.checks import Check, not_applicable
    from deployer.app.doctor.project import pulumi_state, state_store
    from deployer.app.doctor.roles import job_roles

    aws, lake, root = of_aws.Aws(), place.lake, place.root
    no_specs = not_applicable("the specs cannot be read")
    asked = [
        Check("project", "pulumi-state", lambda: pulumi_state(place, partial(_unready_for_state, place, aws))),
        Check("aws", "credentials", lambda: of_aws.credentials(aws)),
        Check("aws", "region", lambda: of_aws.region(aws)),
        Check("aws", "identity", lambda: of_aws.identity(aws)),
        Check("aws", "s3", lambda: of_aws.endpoint(aws, "s3")),
        Check("aws", "sts", lambda: of_aws.endpoint(aws, "sts", needed=False)),
        Check("aws", "clock", lambda: of_aws.clock(aws)),
    ]
    if not place.is_on_s3:
        off = not_applicable("the root is not on S3" if root else "the root is not known")
        of_lakes = ("dynamodb", "emr-serverless", "emr", *_OF_LAKE)
        return [
            *asked,
            Check("lake", "state-store", lambda: state_store(root)),
            *(Check("aws", name, lambda: off) for name in of_lakes),
        ]
    return [
        *asked,
        Check("aws", "dynamodb", lambda: of_aws.endpoint(aws, "dynamodb")),
        *(Check("aws", kind, partial(_cluster_endpoint, aws, lake, kind)) for kind in ("emr-serverless", "emr")),
        Check("aws", "bucket", lambda: of_lake.bucket(aws, root, managed)),
        Check("lake", "state-store", lambda: state_store(root, lambda: of_lake.unready(aws))),
        Check("aws", "permissions", lambda: of_lake.permissions(aws, lake, root, managed) if lake else no_specs),
        Check("aws", "job-roles", lambda: job_roles(aws, lake, root) if lake else no_specs),
        Check("aws", "quotas", lambda: of_lake.quotas(aws, lake) if lake else no_specs),
    ]


def _unready_for_state(place: Place, aws: Aws) -> str:
    """Why Pulumi's state cannot be asked for: nothing where it is in a folder, or has a profile of its own."""
    from deployer.app.doctor.aws import without_credentials

    backend = place.workspace.project.backend_url if place.workspace else ""
    return without_credentials(aws) if place.keeps_state_on_s3 and "profile=" not in backend else ""


def _cluster_endpoint(aws: Aws, lake: Lake | None, kind: str) -> Finding:
    from deployer.app.doctor.aws import endpoint
    from deployer.app.doctor.checks import not_applicable
    from deployer.app.doctor.lake import clusters_of

    return endpoint(aws, kind) if clusters_of(lake, kind) else not_applicable(f"no cluster of kind {kind} is declared")


def _document(stack: str, results: Sequence[Result]) -> dict[str, Any]:
    from deployer.app.doctor.checks import counts

    return {
        "format": FORMAT_VERSION,
        "stack": stack,
        "counts": {status.value: number for status, number in counts(results).items()},
        "checks": [
            {
                "group": each.group,
                "check": each.name,
                "status": each.finding.status.value,
                "what": each.finding.what,
                "remedy": each.finding.remedy or None,
                "details": dict(each.finding.details),
            }
            for each in results
        ],
    }


def _print(results: Sequence[Result]) -> None:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from deployer.app.doctor.checks import Status, counts
    from deployer.cli.console.output import stdout

    symbols = {
        Status.OK: ("ok", "green"),
        Status.WARNING: ("warning", "yellow"),
        Status.WRONG: ("wrong", "bold red"),
    }
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    unneeded: dict[str, list[str]] = {}
    for each in results:
        if each.finding.status is Status.NOT_APPLICABLE:
            unneeded.setdefault(each.finding.what, []).append(each.name)
            continue
        symbol, style = symbols[each.finding.status]
        lines = [Text(each.finding.what)]
        if each.finding.remedy:
            lines.append(Text(f"→ {each.finding.remedy}", "cyan"))
        table.add_row(Text(symbol, style), each.name, Group(*lines))
    counted = counts(results)
    summary = ", ".join(f"{number} {status.value}" for status, number in counted.items() if number)
    stdout().print(table)
    for why, names in unneeded.items():
        stdout().print(Text(f"not applicable: {', '.join(names)} ({why})", "dim"))
    stdout().print(Text("Doctor: ", "bold").append(summary, "bold red" if counted[Status.WRONG] else "not bold"))
