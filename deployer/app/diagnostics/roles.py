"""The check whether the roles of jobs on clusters have the permissions that jobs need. IAM simulates the calls; none of
them is made."""

from __future__ import annotations

from botocore.exceptions import ClientError

from deployer.app.diagnostics.aws import NO_ANSWER, Aws, aws_message, one_line
from deployer.app.diagnostics.checks import Finding, not_applicable, ok, warning, wrong
from deployer.app.diagnostics.lake import clusters_of, first_of, lake_on_aws, simulated, unready
from deployer.compute.iam.deploying import deploying_grants
from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.platform.aws.names import own_name
from deployer.platform.text.formatting import count
from deployer.specs.model import Cluster, Lake


def job_roles(aws: Aws, lake: Lake, root: str) -> Finding:
    """Checks the role of each cluster on AWS, if the role exists: created by the stack, or named by `execution_role`.

    A job reads and writes the lake and its state, as the deploying role does.
    """
    if why := unready(aws):
        return not_applicable(why)
    clusters = [cluster for kind in sorted(REMOTE_KINDS) for cluster in clusters_of(lake, kind)]
    if not clusters:
        return not_applicable("no cluster is on AWS")
    needed = [grant for grant in deploying_grants(lake_on_aws(aws, lake)) if grant.part == "lake"]
    iam, looked_at, denied = aws.client("iam"), [], []
    for cluster in clusters:
        try:
            role = str(iam.get_role(RoleName=_name_of_role(lake, root, cluster))["Role"]["Arn"])
        except iam.exceptions.NoSuchEntityException:
            if "execution_role" in cluster.options:
                what = f"the role of cluster {cluster.name} is not in this account: {cluster.options['execution_role']}"
                return wrong(what, "create it, or name another role in `execution_role`")
            continue  # `up` creates it
        except ClientError as error:
            return warning(f"not checked: {aws_message(error)}", "allow iam:GetRole on the roles of clusters")
        except NO_ANSWER as error:
            return warning(f"not checked: {one_line(error)}", "check the network and the proxy")
        found = simulated(iam, role, needed)
        if isinstance(found, Finding):
            return found
        looked_at.append(cluster.name)
        denied += [f"{call} (cluster {cluster.name})" for call in found]
    if denied:
        remedy = (
            "run `deployer up`, which gives its own roles what they need; "
            "give other roles what docs/aws-permissions.md lists"
        )
        return wrong(f"jobs are denied {count(len(denied), 'call')}: {first_of(denied)}", remedy, denied=denied)
    if not looked_at:
        return not_applicable("the roles of clusters do not exist yet: `deployer up` creates them")
    return ok(f"jobs may read and write the lake on {', '.join(looked_at)}", clusters=looked_at)


def _name_of_role(lake: Lake, root: str, cluster: Cluster) -> str:
    declared = cluster.options.get("execution_role")
    return str(declared).rpartition("/")[2] if declared else own_name(root, lake.instance.name, cluster.name)
