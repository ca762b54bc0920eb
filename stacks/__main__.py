"""The Pulumi program: reads the specs that the stack names and declares what they describe.

`deployer up` runs it, and so does `pulumi up`.
"""

from pathlib import Path

import pulumi
from local import declare_lake

from deployer.provider.sdk import stack_values
from deployer.specs import load_lake

project_dir = Path(__file__).resolve().parent.parent
specs = pulumi.Config("deployer").get("specs") or "specs"
declare_lake(load_lake(project_dir, project_dir / specs, pulumi.get_stack(), stack_values()))
