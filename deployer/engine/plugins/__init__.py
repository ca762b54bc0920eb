"""Provider plug-ins in Pulumi's plug-in folder: finding the one that a program needs and its publisher, and installing
it.

The layout of the folder, its locks and the places of archives are those of Pulumi's own engine
(`sdk/go/common/workspace/plugins.go`, `pkg/pluginstorage` of pulumi/pulumi), so that either finds what the other
installed.

`deployer.engine.providers`, `deployer.app` and `deployer.cli` may import it.
"""
