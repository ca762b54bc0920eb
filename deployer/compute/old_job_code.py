"""Removes unused job code from below the root of a lake on S3.

The age of an object does not show whether it is used: each job may run code that was uploaded long ago. Therefore the
grace period begins when nothing names the code any longer. An object beside the code records this time between two
calls of `up`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deployer.compute.jobs.code import PREFIX
from deployer.compute.running.published_clusters import FILE as CLUSTERS
from deployer.datasets.storage.options import objects_at
from deployer.platform.storage.objects import Missing, ObjectStore

DAYS = 90  #: days for which unnamed code stays; a running job may still load it, and no job runs that long
RECORD = f"{PREFIX}/unused.json"  #: for each unnamed code, by the SHA-256 in its path: since when it is unnamed (ms)
_DAY = 86_400_000
_CODE = re.compile(rf"{PREFIX}/([0-9a-f]{{64}})/[^/]+")


@dataclass(frozen=True, slots=True)
class Removed:
    """The number of removed objects, and the number of their bytes."""

    objects: int = 0
    bytes: int = 0


def remove_old_code(root: str, stack: Callable[[], str], now: int | None = None) -> Removed:
    """Removes code that nothing has named for `DAYS` days.

    `stack` returns the state of the lake's stack, after it was applied, as text. `now` is in ms since 1970. Code is
    named if that text has its hash anywhere, such as in outputs and schedules, or if the published clusters, which
    Python programs read, have it. If the stack names no code at all, nothing is removed, because the stack may be that
    of another lake. Without a valid record, the time counts from now.
    """
    at = round(time.time() * 1000) if now is None else now
    objects = objects_at(root)
    found = [(match[1], each) for each in objects.described(PREFIX) if (match := _CODE.fullmatch(each.path))]
    if not found:
        return Removed()
    named = stack()
    if not any(code in named for code, _ in found):
        return Removed()
    named += _text(objects, CLUSTERS) or ""
    before = _record(objects)
    unused = {code: min(at, before.get(code, at)) for code, _ in found if code not in named}
    old = [
        each
        for code, each in found
        if code in unused and max(unused[code], round(each.changed * 1000)) <= at - DAYS * _DAY
    ]
    objects.delete([each.path for each in old])
    gone = {each.path for each in old}
    left = {code: unused[code] for code, each in found if code in unused and each.path not in gone}
    if left != before:
        objects.put(RECORD, json.dumps(left, indent=1, sort_keys=True).encode())
    return Removed(len(old), sum(each.bytes for each in old))


def _record(objects: ObjectStore) -> Mapping[str, int]:
    text = _text(objects, RECORD)
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {code: since for code, since in found.items() if type(since) is int}


def _text(objects: ObjectStore, path: str) -> str | None:
    try:
        return objects.get(path).decode("utf-8", "replace")
    except Missing:
        return None
