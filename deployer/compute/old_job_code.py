"""Removes the code of jobs that nothing has named for long, from below the root of a lake on S3.

The age of an object does not show whether it is used: what was uploaded long ago may be what each job runs. So the time
counts from when nothing named the code any more, which an object beside the code records from one `up` to the next.
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

DAYS = 90  #: for which code stays once nothing names it: a job that runs may still ask for it, and none is that long
RECORD = f"{PREFIX}/unused.json"  #: since when (ms) nothing names which code, by the SHA-256 in its path
_DAY = 86_400_000
_CODE = re.compile(rf"{PREFIX}/([0-9a-f]{{64}})/[^/]+")


@dataclass(frozen=True, slots=True)
class Removed:
    """The removed objects of code, and their bytes."""

    objects: int = 0
    bytes: int = 0


def remove_old_code(root: str, stack: Callable[[], str], now: int | None = None) -> Removed:
    """Removes code that nothing has named for `DAYS`. `stack` gives the state of the lake's stack as text, after it was
    applied; `now` is in ms since 1970.

    Named is what is anywhere in that text, such as in its outputs and its schedules, and in what Python programs read
    of clusters. A stack that names no code removes none: it is another's. Without the record, or with one that is
    damaged, the time counts from now.
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
