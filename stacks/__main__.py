"""The Pulumi program: reads the specs that the stack names and declares what they describe.

`deployer up` runs it, and so does `pulumi up`.
"""

from pathlib import Path

import pulumi

from deployer.provider.sdk import stack_values
from deployer.specs import load_lake

project_dir = Path(__file__).resolve().parent.parent
config = pulumi.Config("deployer")
specs = config.get("specs") or "specs"
managed = config.get("aws") or "all"  # what of AWS this stack declares, for a root on S3: all, table or none
lake = load_lake(project_dir, project_dir / specs, pulumi.get_stack(), stack_values())
if lake.instance.root.startswith("s3://") and managed != "none":
    from aws import declare_lake_on_aws

    declare_lake_on_aws(lake, managed, project_dir)
else:
    from local import declare_lake

    declare_lake(lake)
