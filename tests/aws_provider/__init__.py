"""`pulumi-resource-aws` for tests: the official provider's types that `stacks/aws.py` uses, over boto3."""
