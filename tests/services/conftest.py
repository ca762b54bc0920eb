"""Whatever takes `root` runs on SQLite and on DynamoDB with S3 alike, as the state store's tests do."""

from __future__ import annotations

from tests.state.conftest import bucket, on_s3, root

__all__ = ["bucket", "on_s3", "root"]
