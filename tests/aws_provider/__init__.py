"""`pulumi-resource-aws` for tests: the official provider's types that `deployer.components` uses, over boto3."""
