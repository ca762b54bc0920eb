"""What deployer does, below its commands: each use case as functions with typed results."""
