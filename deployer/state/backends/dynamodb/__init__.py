"""The backend of an instance on S3: items of one DynamoDB table.

The rest of `deployer.state` and every layer above `deployer.state` may import it.
"""
