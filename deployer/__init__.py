"""Infrastructure as code for lakehouse tables. docs/design.md lists the packages, from the commands down."""

from deployer import former_names

__version__ = "0.1.0"

#: Of the package index and of package metadata. The distribution `deployer` there is another project's.
DISTRIBUTION = "deployer-lake"

former_names.install()
