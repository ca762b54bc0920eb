"""The Pulumi program: the lake that the specs of the stack declare. `deployer up` runs it, and so does `pulumi up`."""

from deployer.components import declare_project

declare_project()
