"""Renames indexes. For that it reads the details of a version's index segments as bytes, which pylance does not return.

A manifest ends with its message's position (8 bytes), the format's version (4) and a magic number (4). The message
names the position of the section of indexes. Both are preceded by their length (4 bytes). The messages are `Manifest`,
`IndexSection` and `IndexMetadata` of Lance's protos/table.proto, of which this module declares only the needed fields.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from deployer.datasets.dataset import manifest_of
from deployer.datasets.lance_transactions import ChangeDataset
from deployer.datasets.storage.options import objects_at

if TYPE_CHECKING:
    import lance
    from lance.dataset import Index

Details = tuple[str, bytes]  #: the type's URL, and the message


def segment_details(location: str, version: int) -> Mapping[str, Details]:
    """Returns the details of all segments of indexes in that version of the dataset, by the segments' ids.

    Raises NotFound when the version does not exist.
    """
    data = objects_at(location).get(f"_versions/{manifest_of(location, version)}")
    manifest = _message("Manifest").FromString(_block(data, int.from_bytes(data[-16:-8], "little")))
    if not manifest.HasField("index_section"):
        return {}
    section = _message("IndexSection").FromString(_block(data, manifest.index_section))
    return {
        str(uuid.UUID(bytes=each.uuid.uuid)): (each.index_details.type_url, each.index_details.value)
        for each in section.indices
    }


def rename_segments(location: str, dataset: lance.LanceDataset, before: str, after: str) -> ChangeDataset:
    """Returns the operation that gives the index `before` the name `after`.

    pylance has no call for that. It is the commit that makes indexes, with the segments of the old name removed and
    added under the new one.
    """
    import lance

    segments = index_segments(location, dataset, before)
    renamed = [replace(each, name=after) for each in segments]
    return ChangeDataset(lance.LanceOperation.CreateIndex(renamed, segments))


def index_segments(location: str, dataset: lance.LanceDataset, name: str) -> list[Index]:
    """Returns the segments of the index of that name, in the form that commits of Lance take; none where the index does
    not exist.

    All that Lance stores of a segment is included. Otherwise Lance would ignore the index, or the index would lose its
    parameters.
    """
    from lance.dataset import Index

    found = [each for each in dataset.describe_indices() if each.name == name]
    details = segment_details(location, dataset.version) if found else {}
    return [
        Index(
            uuid=segment.uuid,
            name=name,
            fields=described.fields,
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=segment.fragment_ids,
            index_version=segment.index_version,
            created_at=segment.created_at,
            base_id=segment.base_id,
            index_details=details[str(segment.uuid)],
            covering_fields=segment.covering_fields,
        )
        for described in found
        for segment in described.segments
    ]


def _block(data: bytes, position: int) -> bytes:
    length = int.from_bytes(data[position : position + 4], "little")
    return data[position + 4 : position + 4 + length]


@cache
def _message(name: str) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    package = "lance_index_sections"
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")

    def message(name: str, *fields: tuple[str, int, Any]) -> None:
        made = file.message_type.add(name=name)
        for field, number, kind in fields:
            if isinstance(kind, int):
                made.field.add(name=field, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
                continue
            label = kinds.LABEL_REPEATED if field == "indices" else kinds.LABEL_OPTIONAL
            made.field.add(
                name=field, number=number, type=kinds.TYPE_MESSAGE, type_name=f".{package}.{kind}", label=label
            )

    message("Manifest", ("index_section", 6, kinds.TYPE_UINT64))
    message("UUID", ("uuid", 1, kinds.TYPE_BYTES))
    message("Details", ("type_url", 1, kinds.TYPE_STRING), ("value", 2, kinds.TYPE_BYTES))
    message("IndexMetadata", ("uuid", 1, "UUID"), ("index_details", 6, "Details"))
    message("IndexSection", ("indices", 1, "IndexMetadata"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
