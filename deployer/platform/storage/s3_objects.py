"""Objects in a bucket, through obstore. Credentials are found as by boto3, and are never written or shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import obstore
from botocore.exceptions import BotoCoreError
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from deployer.errors import DeployerError, NotFound, OutcomeUnknown
from deployer.platform.aws.error_codes import CREDENTIALS
from deployer.platform.aws.session import setting_missing
from deployer.platform.storage.local_folders import parts_of
from deployer.platform.storage.objects import Missing, ObjectInfo
from deployer.platform.storage.s3_client import AS_FOUND, PATIENCE, Bucket, S3Access, bucket_of
from deployer.platform.storage.s3_errors import refusal_in
from deployer.platform.system.clock import Clock
from deployer.platform.system.retry import steady

T = TypeVar("T")

_PAUSE = steady(0.2)


class S3Objects:
    """Implements `objects.ObjectStore` below `s3://bucket/prefix`. It is safe for threads; do not use it after a
    fork."""

    def __init__(self, root: str, clock: Clock | None = None, access: S3Access = AS_FOUND) -> None:
        self._root, self._clock = root.rstrip("/"), clock or Clock()
        parts = urlsplit(self._root)
        self._name, self._prefix = parts.netloc, parts.path.strip("/")
        self._access = access

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        # the content of a name never changes, so a repeated put is harmless
        self._asked("PutObject", path, lambda store, key: obstore.put(store, key, data))

    def put_new(self, path: str, data: bytes) -> bool:
        """Puts an object unless there is one of that name."""
        return self.replace(path, data, None) is not None

    def get(self, path: str) -> bytes:
        return self._asked("GetObject", path, lambda store, key: bytes(obstore.get(store, key).bytes()))

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Returns the bytes from `start` up to `end`. Raises Missing."""

        def get(store: S3Store, key: str) -> bytes:
            return bytes(obstore.get_range(store, key, start=start, end=end))

        return self._asked("GetObject", path, get)

    def get_range_of(self, path: str, start: int, end: int, tag: str) -> bytes | None:
        """Returns the bytes from `start` up to `end` of the object with that tag; None where the object has another tag
        now. Raises Missing."""

        def get(store: S3Store, key: str) -> bytes:
            return bytes(obstore.get(store, key, options={"range": (start, end), "if_match": tag}).bytes())

        try:
            return self._asked("GetObject", path, get)
        except PreconditionError:
            return None

    def size(self, path: str) -> int:
        return self._asked("HeadObject", path, lambda store, key: int(obstore.head(store, key)["size"]))

    def list(self, prefix: str) -> Sequence[str]:
        return [path for path, _ in self._listed(prefix)]

    def described(self, prefix: str) -> Sequence[ObjectInfo]:
        return [
            ObjectInfo(path, int(each["size"]), each["last_modified"].timestamp(), str(each["e_tag"] or ""))
            for path, each in self._listed(prefix)
        ]

    def about(self, path: str) -> ObjectInfo | None:
        """Returns one object without its content; None when there is none."""
        try:
            found = self._asked("HeadObject", path, lambda store, key: obstore.head(store, key))
        except Missing:
            return None
        return ObjectInfo(path, int(found["size"]), found["last_modified"].timestamp(), str(found["e_tag"] or ""))

    def first_page(self, prefix: str) -> Sequence[str]:
        """Returns the first 1,000 paths in the folder `prefix` and below, in the order of their names. One request."""
        found = self._asked(
            "ListObjectsV2", prefix, lambda store, key: next(obstore.list(store, key or None, chunk_size=1000), ())
        )
        return [self._relative(each) for each in found]

    def described_after(self, path: str, pages: int) -> Iterator[ObjectInfo]:
        """Yields the objects in the folder of `path` and below whose names follow it, in the order of their names: at
        most this many pages of 1,000 objects, each by one request."""
        folder = path.rpartition("/")[0]

        def listed(store: S3Store, key: str) -> Iterator[Any]:
            return iter(obstore.list(store, key or None, offset=self._key(path), chunk_size=1000))

        found = self._asked("ListObjectsV2", folder, listed)
        for _ in range(pages):
            page = self._asked("ListObjectsV2", folder, lambda *_: next(found, None))
            if page is None:
                return
            for each in page:
                info = int(each["size"]), each["last_modified"].timestamp(), str(each["e_tag"] or "")
                yield ObjectInfo(self._relative(each), *info)

    def upload(self, path: str, file: Path) -> None:
        """Puts a file of any size, in parts when it is large."""
        self._asked("PutObject", path, lambda store, key: obstore.put(store, key, file))

    def has(self, path: str) -> bool:
        """Returns whether there is an object of that name."""
        try:
            self._asked("HeadObject", path, lambda store, key: obstore.head(store, key))
        except Missing:
            return False
        return True

    def tagged(self, path: str) -> tuple[bytes, str] | None:
        """Returns an object and the tag of its content; None when there is none."""

        def ask(store: S3Store, key: str) -> tuple[bytes, str]:
            found = obstore.get(store, key)
            return bytes(found.bytes()), str(found.meta["e_tag"])

        try:
            return self._asked("GetObject", path, ask)
        except Missing:
            return None

    def replace(self, path: str, data: bytes, tag: str | None, *, durable: bool = True) -> str | None:
        """Replaces the object with this tag (None: creates it), and returns the new tag; None where the object has
        another tag now."""
        mode: Any = "create" if tag is None else {"e_tag": tag}
        try:
            return str(
                self._asked("PutObject", path, lambda store, key: obstore.put(store, key, data, mode=mode))["e_tag"]
            )
        except (AlreadyExistsError, PreconditionError):
            found = self.tagged(path)  # an answer may have been lost
            return found[1] if found is not None and found[0] == data else None

    def delete(self, paths: Iterable[str]) -> None:
        listed = [*paths]
        if listed:
            for path in listed:
                parts_of(path)  # an empty or unusual path would name another object
            keys = [self._key(path) for path in listed]
            self._asked("DeleteObjects", listed[0], lambda store, _: obstore.delete(store, keys))

    def _listed(self, prefix: str) -> Sequence[tuple[str, Any]]:
        found = self._asked("ListObjectsV2", prefix, lambda store, key: obstore.list(store, key or None).collect())
        return [(self._relative(each), each) for each in found]

    def _key(self, path: str) -> str:
        return "/".join(filter(None, (self._prefix, path.strip("/"))))

    def _relative(self, listed: Any) -> str:
        return str(listed["path"]).removeprefix(f"{self._prefix}/" if self._prefix else "")

    def _asked(self, call: str, path: str, ask: Callable[[S3Store, str], T]) -> T:
        deadline, looked_again = self._clock.monotonic() + PATIENCE, False
        key = self._key(path)
        bucket = bucket_of(self._name, self._access)
        while True:
            client = bucket.client()  # a missing file of credentials is not a missing object
            try:
                return ask(client, key)
            except (AlreadyExistsError, PreconditionError):
                raise
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise self._no_bucket() from None
                raise Missing(path) from None
            except (BaseError, BotoCoreError) as error:
                if not looked_again and any(code in str(error) for code in CREDENTIALS):
                    looked_again = True
                    bucket.look_again()
                    continue
                failure = self._in_words(error, call, bucket, key)
                if not isinstance(failure, OutcomeUnknown) or self._clock.monotonic() > deadline:
                    raise failure from error
            _PAUSE.wait(1, self._clock)

    def _in_words(self, error: BaseError | BotoCoreError, call: str, bucket: Bucket, key: str) -> DeployerError:
        message = " ".join(str(error).split()).partition(" Debug source")[0]
        if "NoSuchBucket" in message:
            return self._no_bucket()
        if isinstance(error, BotoCoreError):
            return setting_missing(error, self._root)
        if "redirect" in message.lower():
            return DeployerError(
                "the bucket is in another region", where=self._root, remedy="set AWS_REGION to the bucket's region"
            )
        asked = f"{call} of {bucket.uri}/{key}"
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) and refusal_in(message) is None:
            message = f"403 Forbidden {message}"
        if (refusal := refusal_in(message)) is not None:
            kind = DeployerError if refusal.is_final else OutcomeUnknown
            return kind(f"{refusal.what} ({asked})", where=self._root, remedy=refusal.remedy)
        return OutcomeUnknown(
            f"the bucket did not answer: {message[:200]} ({asked})",
            where=self._root,
            remedy="check the endpoint, then try again",
        )

    def _no_bucket(self) -> NotFound:
        return NotFound(
            "the bucket does not exist",
            where=self._root,
            remedy="create the bucket, or check the name (`root`, or the backend's URL)",
        )
