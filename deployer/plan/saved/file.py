"""Saved plans: the changes to apply, and all live state that the plan was made from.

A plan is one JSON document: `format`, the pinned state, and `checksum`, the SHA-256 of the rest in canonical JSON,
which detects accidental edits. The file's digest and `signature` (`plan_seal`) detect intentional edits. The file does
not contain the stack's configuration, and so no credentials. Rows, bytes and versions change by themselves and are not
pinned, except where the plan is safe only because a table has no rows.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from deployer.errors import Corrupt, InvalidInput, NotFound, Refused
from deployer.live.model import LiveLake, LiveTable
from deployer.plan.assess.risk import assess
from deployer.plan.model import Plan, ResourcePlan
from deployer.plan.removals import saved_names
from deployer.plan.saved.seal import PlanSigner, SavedAs, check_signature, digest_of, read_file
from deployer.plan.targeting.targets import Targets, targets_as_json, targets_from_json
from deployer.platform.files.json_documents import NotADocument, format_of, read_document
from deployer.platform.files.private import write_private
from deployer.specs.model import InstanceSpec, Lake
from deployer.specs.serialized.aws import aws_from_json, aws_to_json
from deployer.specs.serialized.datasets import dataset_from_json, dataset_to_json
from deployer.specs.serialized.specs import (
    column_to_json,
    instance_from_json,
    instance_to_json,
    table_from_json,
    table_to_json,
)
from deployer.specs.validation.plain_values import mapping, objects, text, texts

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT_VERSION = 1
JSON = Any
#: the state that a plan read: address to property to value
Facts = Mapping[str, Mapping[str, JSON]]

_PLACE = ("root", "state")  #: the properties of an instance that determine the place of its tables
_AGAIN = "preview again with --out"
_RESOURCE = "resource"  #: the property that names a table's resource in Pulumi's state
_READABLE = "readable"  #: the only property of a table that could not be read


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan that `up` applies unchanged. `stack` is `project/stack`; `specs` is relative to the project's folder, or
    absolute when it is not inside."""

    deployer: str
    stack: str
    specs: str
    allow_destroy: tuple[str, ...]
    desired: Lake
    read: Facts
    changes: JSON  #: the plan as `preview --format json` prints it, for people and tools
    targets: Targets | None = None  #: the targets of `up`; None for all that `desired` declares
    delete_savepoints: bool = False
    saved_as: SavedAs = field(default=SavedAs("", ""), compare=False)  #: the file that it was read from

    @property
    def removals(self) -> frozenset[tuple[str, int]]:
        """The datasets that the plan removes, by table id and number."""
        return saved_names(self.changes)


@dataclass(frozen=True, slots=True)
class MovedFact:
    """A property that changed after the plan read it; None: it did not exist, or no longer exists."""

    address: str
    name: str
    before: JSON
    now: JSON

    def __str__(self) -> str:
        return f"{self.address}: {self.name}: {_value_text(self.before)} → {_value_text(self.now)}"


def facts(plan: Plan, live: LiveLake, desired: Lake, owner: str) -> dict[str, dict[str, JSON]]:
    """Returns the state that the plan depends on: the instance, and each table that is declared or that `owner`
    manages.

    `live` has only the plan's targets, where there are targets. For an instance outside the targets, only its place
    counts.
    """
    read: dict[str, dict[str, JSON]] = {}
    if live.instance is not None:
        form, address = instance_to_json(live.instance), live.instance.address
        whole = plan.targets is None or address in plan.targets.addresses
        read[address] = form if whole else {name: form.get(name) for name in _PLACE}
    declared = {table.spec.address for spec in desired.tables if isinstance(table := live.of(spec), LiveTable)}
    for address, table in live.tables.items():
        if table.owner == owner or address in declared or address in live.resources:
            read[address] = _table_facts(table) | {_RESOURCE: live.resources.get(address)}
    wanted = {spec.address for spec in desired.datasets}
    for address, dataset in live.datasets.items():
        if dataset.owner == owner or address in wanted or dataset.dataset_id in live.applied_datasets:
            own = {"id": dataset.dataset_id, "owner": dataset.owner}
            read[address] = own | dataset_to_json(dataset.spec)
    for address, unreadable in live.unreadable.items():
        read[address] = {"id": unreadable.table_id, _READABLE: False}
    for resource in plan.resources:
        if resource.live_address and _is_safe_only_when_empty(resource):
            read[resource.live_address]["holds rows"] = False
        if resource.savepoints:
            read[resource.live_address]["savepoints"] = list(resource.savepoints)
    for item in plan.foreign:
        read.setdefault(item.address, {})["operation"] = " ".join((item.action, item.detail)).strip()
    known: dict[str, dict[str, JSON]] = json.loads(json.dumps(read))  # in the form that a file returns
    return known


def moved(before: Facts, now: Facts, live: LiveLake) -> list[MovedFact]:
    """Returns the differences between two readings. A table that had to be empty counts as changed when it has rows
    now."""
    found = []
    for address in sorted({*before, *now}):
        old, new = before.get(address), now.get(address)
        if old is None or new is None:
            found.append(MovedFact(address, "exists", old is not None, new is not None))
            continue
        if old.get(_READABLE, True) != new.get(_READABLE, True):
            found.append(MovedFact(address, _READABLE, old.get(_READABLE, True), new.get(_READABLE, True)))
            continue
        found += [
            MovedFact(address, name, old.get(name), new.get(name))
            for name in dict.fromkeys((*old, *new))
            if name != "holds rows" and old.get(name) != new.get(name) and not _follows_from_columns(name, old, new)
            if name != _RESOURCE or _RESOURCE in old  # earlier releases did not save it
        ]
        table = live.tables.get(address)
        if old.get("holds rows") is False and table is not None and table.statistics.rows:
            found.append(MovedFact(address, "rows", 0, table.statistics.rows))
        dataset = live.datasets.get(address)
        if old.get("holds rows") is False and dataset is not None and dataset.layers:
            found.append(MovedFact(address, "layers", 0, dataset.layers))
    return found


def _follows_from_columns(name: str, old: Mapping[str, JSON], new: Mapping[str, JSON]) -> bool:
    """Returns whether the order of columns differs only because columns were added or removed, which is reported
    separately."""
    if name != "columns":
        return False
    before, after = ({each for each in facts if each.startswith("column ")} for facts in (old, new))
    return before != after


def _table_facts(table: LiveTable) -> dict[str, JSON]:
    form = table_to_json(table.spec)
    columns = {f"column {column.name}": column_to_json(column) for column in table.spec.columns}
    order = [column.name for column in table.spec.columns]
    own = {"id": table.table_id, "owner": table.owner, "generation": table.statistics.generation}
    return own | {**form, "columns": order} | columns


def _is_safe_only_when_empty(resource: ResourcePlan) -> bool:
    if resource.statistics.rows:
        return False
    with_a_row = replace(resource.statistics, rows=1)
    return any(assess(each.change, with_a_row).risk is not each.assessment.risk for each in resource.changes)


def write_plan(path: Path, saved: SavedPlan, signer: PlanSigner | None = None) -> SavedAs:
    """Writes the file, whole or not at all, and returns its digest. Raises InvalidInput when it cannot be written."""
    document = {
        "format": FORMAT_VERSION,
        "deployer": saved.deployer,
        "stack": saved.stack,
        "specs": saved.specs,
        "allow_destroy": list(saved.allow_destroy),
        **({"delete_savepoints": True} if saved.delete_savepoints else {}),
        "desired": {
            "instance": instance_to_json(saved.desired.instance),
            "aws": aws_to_json(saved.desired.instance.aws),
            "tables": [table_to_json(table) for table in saved.desired.tables],
            **_datasets_as_json(saved.desired),
        },
        "read": saved.read,
        **({"targets": targets_as_json(saved.targets)} if saved.targets else {}),
        "changes": saved.changes,
    }
    document["checksum"] = _checksum(document)
    if signer is not None:
        document["signature"] = signer.sign(document["checksum"])
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    try:
        write_private(path, text)
    except OSError as error:
        raise InvalidInput(
            f"the plan cannot be written: {error.strerror}", where=path, remedy="choose another"
        ) from error
    return SavedAs(str(path), digest_of(text.encode()), document["signature"]["key"] if signer else "")


def read_plan(
    path: Path, *, deployer: str, expect: str | None = None, key: Ed25519PublicKey | None = None
) -> SavedPlan:
    """Reads a plan that this release of deployer wrote.

    Raises NotFound, InvalidInput for a file that is not a plan, and Corrupt for a damaged or edited one. Raises Refused
    for a plan of a later format or another release, with another digest than `expect`, or without a signature of `key`.
    """
    try:
        data = read_file(path, expect)
        document = read_document(data)
    except FileNotFoundError:
        raise NotFound(
            "this plan file does not exist", where=path, remedy="create it: deployer preview --out FILE"
        ) from None
    except OSError as error:
        raise InvalidInput(f"the plan cannot be read: {error.strerror}", where=path, remedy=_AGAIN) from error
    except NotADocument as error:
        raise InvalidInput(
            f"this is not a valid plan, or the file is incomplete: {error}", where=path, remedy=_AGAIN
        ) from None
    version = format_of(document)
    if version is None or "checksum" not in document:
        raise InvalidInput(
            "this is not a valid plan", where=path, remedy="give a file that `deployer preview --out` wrote"
        )
    if version > FORMAT_VERSION:
        raise Refused(
            f"the plan is of format {version}, which a later deployer wrote; this one reads up to {FORMAT_VERSION}",
            where=path,
            remedy=f"use the deployer that wrote it, or {_AGAIN}",
        )
    if document["checksum"] != _checksum(document):
        raise Corrupt("the plan does not match its checksum: it was damaged or edited", where=path, remedy=_AGAIN)
    signed_by = check_signature(document, document["checksum"], key, path)
    if (made_by := document.get("deployer")) != deployer:
        raise Refused(f"the plan was made by deployer {made_by}, this is {deployer}", where=path, remedy=_AGAIN)
    try:
        return _of_document(document, SavedAs(str(path), digest_of(data), signed_by))
    except InvalidInput as error:
        raise Corrupt(f"the plan has an unexpected structure: {error}", where=path, remedy=_AGAIN) from None


def _of_document(document: Mapping[str, JSON], saved_as: SavedAs) -> SavedPlan:
    """Returns the plan of a document. Raises InvalidInput, naming the fault, because anyone can compute a checksum for
    any content."""
    stack, specs, desired, read = text(document, "stack"), text(document, "specs"), mapping(document, "desired"), {}
    if not re.fullmatch(r"[^/\x00-\x1f]+/[A-Za-z0-9_.-]+", stack):
        raise InvalidInput(f"`stack` is {stack[:100]!r} and should be PROJECT/STACK")
    if "\0" in specs:
        raise InvalidInput("`specs` is not a path")
    if ".." in PurePath(specs).parts:
        raise InvalidInput("`specs` has the part `..`, which leads elsewhere")
    for address in mapping(document, "read"):
        read[address] = mapping(document["read"], address)
    return SavedPlan(
        deployer=text(document, "deployer"),
        stack=stack,
        specs=specs,
        allow_destroy=texts(document, "allow_destroy"),
        desired=Lake(
            _instance(desired),
            tuple(map(table_from_json, objects(desired, "tables"))),
            datasets=tuple(map(dataset_from_json, objects(desired, "datasets", ()))),
        ),
        read=read,
        changes=mapping(document, "changes"),
        targets=targets_from_json(mapping(document, "targets")) if "targets" in document else None,
        delete_savepoints=document.get("delete_savepoints") is True,
        saved_as=saved_as,
    )


def _datasets_as_json(lake: Lake) -> dict[str, JSON]:
    return {"datasets": [dataset_to_json(each) for each in lake.datasets]} if lake.datasets else {}


def _instance(desired: Mapping[str, JSON]) -> InstanceSpec:
    try:
        aws = aws_from_json(mapping(desired, "aws", {}))
    except ValueError as error:
        raise InvalidInput(f"`aws`: {error}") from None
    return replace(instance_from_json(mapping(desired, "instance")), aws=aws)


def _checksum(document: Mapping[str, JSON]) -> str:
    pinned = {name: value for name, value in document.items() if name not in ("checksum", "signature")}
    text = json.dumps(pinned, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _value_text(value: JSON) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value or "none"
        case {"type": str(kind), "name": _}:
            rest = {key: item for key, item in value.items() if key not in ("type", "name")}
            return f"{kind} {json.dumps(rest, ensure_ascii=False)}" if rest else kind
        case _:
            return json.dumps(value, ensure_ascii=False)
