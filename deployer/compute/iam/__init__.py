"""IAM policies of jobs, people and pipelines. Pure."""
