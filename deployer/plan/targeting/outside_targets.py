"""Data that a change starts to send out of the lake: targets of METASYNC outside the lake. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deployer.errors import InvalidInput
from deployer.plan import changes as c
from deployer.specs.model import ServiceSpec
from deployer.specs.values.target_server import server_of

_SENDS = "METASYNC"


@dataclass(frozen=True, slots=True)
class Outside:
    """A catalog outside the lake. `kind` is the target's type. `place` is the host of a REST server, the folder of a
    directory, the database or account of Glue, or the name of a plug-in. `token` is the variable whose token is sent.
    `declared` is the declared target, because another path or option may lead to another owner's catalog."""

    kind: str
    place: str
    token: str = ""
    declared: str = ""

    @property
    def name(self) -> str:
        """The target's name in policies: a host, or `KIND:PLACE`."""
        return self.place if self.kind == "rest" else f"{self.kind}:{self.place}"

    def __str__(self) -> str:
        where = self.place if self.kind == "rest" else f"{self.kind} {self.place}".strip()
        return f"{where} (with the token in {self.token})" if self.token else where


def begins_to_send(change: c.Change) -> tuple[Outside, ...]:
    """Returns the catalogs that a table is newly published to, or published to in another way."""
    match change:
        case c.CreateTable(spec=spec):
            return tuple(dict.fromkeys(each for service in spec.services for each in _catalogs(service)))
        case c.CreateService(service=service):
            return _catalogs(service)
        case c.ChangeServiceOptions(service="METASYNC", before=old, after=new, before_raw=was_raw, after_raw=is_raw):
            before = () if is_raw else _of_options(old, raw=was_raw)
            return tuple(each for each in _of_options(new, raw=is_raw) if each not in before)
        case _:
            return ()


def places(catalogs: Iterable[Outside]) -> str:
    """Returns the names of several catalogs as one text."""
    return ", ".join(dict.fromkeys(map(str, catalogs)))


def _catalogs(service: ServiceSpec) -> tuple[Outside, ...]:
    return _of_options(service.options, raw=service.unsafe_raw) if service.kind == _SENDS else ()


def _of_options(options: Mapping[str, object], *, raw: bool) -> tuple[Outside, ...]:
    targets = options.get("targets", ())
    if raw or not isinstance(targets, list | tuple):
        return (Outside("unchecked", "whatever its options name"),)
    return tuple(found for target in targets if (found := _catalog(target)) is not None)


def _catalog(target: object) -> Outside | None:
    """Returns the catalog of a target; None for the lake's own: its Glue databases in its account, and the directory at
    its root."""
    declared = target if isinstance(target, Mapping) else {}
    kind = str(declared.get("type", "unchecked"))
    text = json.dumps(declared, sort_keys=True, default=str)
    match kind:
        case "glue":
            parts = [str(declared[key]) for key in ("catalog_id", "database") if key in declared]
            return Outside(kind, "/".join(parts), declared=text) if parts else None
        case "directory":
            return Outside(kind, str(declared["root"]), declared=text) if "root" in declared else None
        case "rest":
            kind, place = _server(str(declared.get("uri", "")))
            return Outside(kind, place, str(declared.get("token_variable", "")), text)
        case _:
            return Outside(kind, str(declared.get("name", "")), declared=text)


def _server(uri: str) -> tuple[str, str]:
    try:
        return "rest", server_of(uri).place
    except InvalidInput:  # live state may have addresses that are now refused
        return "unchecked", "a server whose address is not valid"
