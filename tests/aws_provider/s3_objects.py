"""The type `aws:s3:BucketObjectv2`: a file as an object. Its id is bucket and key, and its etag tells its contents."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pulumi
from botocore.exceptions import ClientError

from tests.aws_provider.kinds import Found, Kind, Values, tag_list, tags_of


def _put(s3: Any, inputs: Values) -> str:
    """Small files: of one part, so that the etag is their MD5."""
    body = Path(inputs["source"].path).read_bytes()
    about = {"ContentType": inputs["contentType"]} if "contentType" in inputs else {}
    s3.put_object(Bucket=inputs["bucket"], Key=inputs["key"], Body=body, **about)
    _tag(s3, inputs)
    return f"{inputs['bucket']}/{inputs['key']}"


def _tag(s3: Any, inputs: Values) -> None:
    where = {"Bucket": inputs["bucket"], "Key": inputs["key"]}
    if tags := inputs.get("tags"):
        s3.put_object_tagging(**where, Tagging={"TagSet": tag_list(tags)})
    else:
        s3.delete_object_tagging(**where)


def _read(s3: Any, id: str, inputs: Values) -> Found | None:
    bucket, _, key = id.partition("/")
    try:
        head = s3.head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] in ("404", "NoSuchKey", "NoSuchBucket"):
            return None
        raise
    tags = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]
    declared = {name: inputs[name] for name in ("source", "contentType") if name in inputs}
    found = {"bucket": bucket, "key": key, **declared, **tags_of(tags)}
    return Found(found, {"arn": f"arn:aws:s3:::{id}", "etag": head["ETag"].strip('"')})


def _update(s3: Any, id: str, before: Values, inputs: Values) -> None:
    if is_other_file(before, inputs):
        _put(s3, inputs)
    else:
        _tag(s3, inputs)


def _delete(s3: Any, id: str, inputs: Values) -> None:
    bucket, _, key = id.partition("/")
    s3.delete_object(Bucket=bucket, Key=key)


def is_other_file(before: Values, inputs: Values) -> bool:
    """Whether a file has other contents than the object: paths say nothing, they are those of some machine."""
    contents = Path(inputs["source"].path).read_bytes()
    return hashlib.md5(contents, usedforsecurity=False).hexdigest() != before.get("etag")


KINDS = {
    "aws:s3/bucketObjectv2:BucketObjectv2": Kind(
        shape={
            "bucket": str,
            "key": str,
            "source": pulumi.FileAsset,
            "contentType": str,
            "tags": {"*": str},
        },
        needed=("bucket", "key", "source"),
        replaces=("bucket", "key"),
        computed=("arn", "etag"),
        create=_put,
        read=_read,
        update=_update,
        delete=_delete,
        service="s3",
        differs={"source": is_other_file},
    )
}
