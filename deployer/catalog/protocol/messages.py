"""The message classes of Rerun's protocol. An import makes them from the data in `rerun_cloud_v1alpha1.json`.

The source of the rules is protobuf's `descriptor.proto`: each proto3 `optional` field has a oneof of its own, which
comes after the real oneofs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf import any_pb2, duration_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

SERVICE = "rerun.cloud.v1alpha1.RerunCloudService"

_CLOUD = "rerun.cloud.v1alpha1"
_KNOWN = (any_pb2, duration_pb2, timestamp_pb2)  #: protobuf's own files that fields refer to

_FACTS: Mapping[str, Any] = json.loads(Path(__file__).with_name("rerun_cloud_v1alpha1.json").read_bytes())
_PACKAGES: Mapping[str, Any] = _FACTS["packages"]


@dataclass(frozen=True, slots=True)
class Method:
    """A call of the service. `request` is the class of the caller's messages, which parses the bytes of one message."""

    name: str
    request: Any
    takes_stream: bool
    gives_stream: bool


def _file(package: str) -> FileDescriptorProto:
    """Returns the description of one package of the protocol."""
    facts = _PACKAGES[package]
    file = FileDescriptorProto(name=_path(package), package=package, syntax="proto3")
    for name, values in facts["enums"].items():
        enum = file.enum_type.add(name=name)
        for value, number in sorted(values.items(), key=lambda each: int(each[1])):
            enum.value.add(name=value, number=number)
    used = set[str]()
    for name, message in facts["messages"].items():
        used |= _add_message(file.message_type.add(name=name), message)
    file.dependency.extend(sorted(used - {file.name}))
    return file


def _add_message(described: DescriptorProto, facts: Mapping[str, Any]) -> set[str]:
    """Adds the fields of `facts` to the description of a message; returns the files that define the fields' types."""
    oneofs = list(facts.get("oneofs", ()))
    for name in oneofs:
        described.oneof_decl.add(name=name)
    used, optional = set[str](), []
    for each in facts["fields"]:
        field = described.field.add(name=each["name"], number=each["number"])
        field.type = FieldDescriptorProto.Type.Value(f"TYPE_{each['type'].upper()}")
        repeated = each["label"] == "repeated"
        field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        if "type_name" in each:
            field.type_name = f".{each['type_name']}"
            used.add(_file_of(each["type_name"]))
        if "oneof" in each:
            field.oneof_index = oneofs.index(each["oneof"])
        elif each["label"] == "optional":
            field.proto3_optional = True
            optional.append(field)
    for field in optional:
        field.oneof_index = len(described.oneof_decl)
        described.oneof_decl.add(name=f"_{field.name}")
    return used


def _file_of(type_name: str) -> str:
    package = type_name.rsplit(".", 1)[0]
    if package in _PACKAGES:
        return _path(package)
    return next(str(each.DESCRIPTOR.name) for each in _KNOWN if type_name in _names(each))


def _names(module: Any) -> set[str]:
    return {f"{module.DESCRIPTOR.package}.{name}" for name in module.DESCRIPTOR.message_types_by_name}


def _path(package: str) -> str:
    return f"{package.replace('.', '/')}.proto"


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    for module in _KNOWN:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    files = {file.name: file for file in map(_file, _PACKAGES)}
    while files:  # adds each file after the files that it depends on
        ready = next(file for file in files.values() if not files.keys() & set(file.dependency))
        pool.AddSerializedFile(files.pop(ready.name).SerializeToString())
    return pool


def _classes(package: str) -> SimpleNamespace:
    names = _PACKAGES[package]["messages"]
    found = {name: _POOL.FindMessageTypeByName(f"{package}.{name}") for name in names}
    return SimpleNamespace(**{name: message_factory.GetMessageClass(each) for name, each in found.items()})


_POOL = _pool()

#: A namespace for each package: its attributes are the message classes of the package.
common: Any = _classes("rerun.common.v1alpha1")
cloud: Any = _classes(_CLOUD)
log_msg: Any = _classes("rerun.log_msg.v1alpha1")


def methods() -> list[Method]:
    """Returns all calls of the service."""
    found = _PACKAGES[_CLOUD]["services"][SERVICE.rsplit(".", 1)[1]]["methods"]
    return [
        Method(
            each["name"],
            getattr(cloud, each["request"].rsplit(".", 1)[1]),
            each["client_streaming"],
            each["server_streaming"],
        )
        for each in found
    ]


def enum_value(name: str, value: str) -> int:
    """Returns the number of a value of an enum of the service."""
    return int(_PACKAGES[_CLOUD]["enums"][name][value])
