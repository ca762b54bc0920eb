"""The backend of an instance on S3: items of one DynamoDB table."""
