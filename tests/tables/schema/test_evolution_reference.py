"""docs/changes.md says of each kind of change what the planner says."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import get_args

from deployer.live.model import TableStatistics
from deployer.plan.assess.risk import assess
from deployer.plan.changes import Change
from deployer.plan.diff.lakes import diff
from tests.plan.lakes import FLIGHTS, INSTANCE
from tests.plan.test_diff import INSTANCES, TABLES
from tests.projects import REPOSITORY

REFERENCE = REPOSITORY / "docs" / "changes.md"
#: FLIGHTS, published in the lake's own catalog alone.
PUBLISHED = replace(
    TABLES["service_external"],
    services=tuple(
        replace(each, options={"targets": [{"type": "glue"}]}) if each.kind == "METASYNC" else each
        for each in TABLES["service_external"].services
    ),
)
ROW = re.compile(r"^\| [^|]+ \| `(\w+)` \| ([a-z, ]+) \|", re.MULTILINE)


def test_the_reference_has_each_kind_with_its_risks() -> None:
    told = {kind: set(risks.split(", ")) for kind, risks in ROW.findall(REFERENCE.read_text(encoding="utf-8"))}
    assert set(told) == {each.kind for each in get_args(Change)}
    changes = [change for after in (*TABLES.values(), None) for change in diff(FLIGHTS, after)]
    changes += diff(PUBLISHED, TABLES["service_external"])
    kept = TABLES["retention"]
    changes += diff(kept, replace(kept, retention=None))
    changes += [change for after in (*INSTANCES.values(), None) for change in diff(INSTANCE, after)]
    changes += [change for after in (FLIGHTS, INSTANCE) for change in diff(None, after)]
    found: dict[str, set[str]] = defaultdict(set)
    for change in changes:
        found[change.kind].add(assess(change, TableStatistics(rows=10, bytes=100)).risk.value)
    assert {kind: told[kind] for kind in found} == dict(found)
