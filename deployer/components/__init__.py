"""What a lake stands on, as components of Pulumi programs: `from deployer.components import declare_project`.

Modules for a root on S3 import `pulumi_aws`, which is large, so they are loaded when they are first asked for.
"""

from deployer.components.project import declare_project, project_lake

__all__ = ["declare_project", "project_lake"]
