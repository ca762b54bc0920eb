"""A Lance schema as a tree of fields that can be changed while every field keeps its id, by which files find it.

`LanceSchema` has no constructor for given ids, and one made from Arrow renumbers its fields, after which reads fail.
Its pickle form is the schema's metadata and its fields' protobufs, depth first: this module reads and writes those. The
message is `lance.file.Field` (protos/file.proto of Lance). Fields of the message that are not declared here are
preserved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from deployer.errors import Refused
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.types import Column

if TYPE_CHECKING:
    import lance

NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field and the fields below it. `proto` is its message as Lance wrote it; the other attributes replace the
    values in the message."""

    id: int
    name: str
    nullable: bool
    logical_type: str
    metadata: Mapping[str, bytes]
    children: tuple[SchemaField, ...]
    proto: bytes

    def noted(self, note: bytes, text: str) -> SchemaField:
        """Returns the field with another description (or default, or source) in its metadata; an empty text removes
        it."""
        key = note.decode()
        kept = {name: value for name, value in self.metadata.items() if name != key}
        return replace(self, metadata=kept | ({key: text.encode()} if text else {}))


@dataclass(frozen=True, slots=True)
class FieldTree:
    """The whole schema: its metadata and its top-level fields in order."""

    metadata: Any
    fields: tuple[SchemaField, ...]

    @staticmethod
    def of(schema: lance.schema.LanceSchema) -> FieldTree:
        metadata, *protos = schema.__reduce__()[1]
        return FieldTree(metadata, _nested(protos))

    def to_lance(self) -> lance.schema.LanceSchema:
        """Returns the schema in the form that Lance's operations take."""
        from lance.schema import LanceSchema

        rebuild = LanceSchema.from_pyarrow(_empty()).__reduce__()[0]
        return rebuild(self.metadata, *_flat(self.fields, NO_PARENT))

    def siblings(self, parent: Sequence[str]) -> tuple[SchemaField, ...]:
        """Returns the fields of the struct at `parent`; for an empty path, the table's columns."""
        return self.at(parent).children if parent else self.fields

    def at(self, path: Sequence[str]) -> SchemaField:
        """Returns the field at a path of the planner. Raises Refused when Lance has no field of its own there."""
        fields, found = self.fields, None
        for name in path:
            found = next((field for field in fields if field.name == _lance_name(found, field, name)), None)
            if found is None:
                break
            fields = _below(found)
        if found is None:
            raise Refused(
                f"Lance keeps no field `{'.'.join(path)}` that can be changed by itself",
                remedy="add a column of the new type, and drop this one later",
            )
        return found

    def changed(self, path: Sequence[str], change: Callable[[SchemaField], SchemaField]) -> FieldTree:
        """Returns the schema with the result of `change` for the field at `path`."""
        target = self.at(path).id
        return self._mapped(lambda field: change(field) if field.id == target else field)

    def with_siblings(self, parent: Sequence[str], fields: Iterable[SchemaField]) -> FieldTree:
        """Returns the schema with other fields in the struct at `parent` (empty: the table)."""
        fields = tuple(fields)
        if not parent:
            return replace(self, fields=fields)
        return self.changed(parent, lambda field: replace(field, children=fields))

    def _mapped(self, change: Callable[[SchemaField], SchemaField]) -> FieldTree:
        def mapped(field: SchemaField) -> SchemaField:
            return change(replace(field, children=tuple(map(mapped, field.children))))

        return replace(self, fields=tuple(map(mapped, self.fields)))


def new_field(column: Column, first_id: int) -> SchemaField:
    """Returns the fields of a new column, numbered depth first from `first_id`, which no data file may use already."""
    import pyarrow as pa
    from lance.schema import LanceSchema

    protos = LanceSchema.from_pyarrow(pa.schema([arrow_field(column)])).__reduce__()[1][1:]

    def numbered(field: SchemaField) -> SchemaField:
        return replace(field, id=field.id + first_id, children=tuple(map(numbered, field.children)))

    return numbered(_nested(protos)[0])


def next_field_id(dataset: lance.LanceDataset) -> int:
    """Returns an id above all ids that the schema or a data file uses. The values of dropped columns stay in their
    files."""
    in_files = (field for each in dataset.get_fragments() for file in each.metadata.files for field in file.fields)
    return int(max(dataset.max_field_id, max(in_files, default=NO_PARENT))) + 1


def _below(field: SchemaField) -> tuple[SchemaField, ...]:
    """Returns the fields by which a path continues. Keys and values of a map are in a struct that paths do not name."""
    return field.children[0].children if field.logical_type.startswith("map") and field.children else field.children


def _lance_name(parent: SchemaField | None, field: SchemaField, name: str) -> str:
    """Returns Lance's name for `name`. The writer chose the names of list items, keys and values."""
    if parent is None or parent.logical_type == "struct":
        return name
    if parent.logical_type.startswith("map"):
        return _below(parent)[0 if name == "key" else 1].name
    return field.name


def _nested(protos: Sequence[bytes]) -> tuple[SchemaField, ...]:
    messages = [(_message().FromString(proto), proto) for proto in protos]
    below: dict[int, list[tuple[Any, bytes]]] = {}
    for message, proto in messages:
        below.setdefault(message.parent_id, []).append((message, proto))

    def build(parent: int) -> tuple[SchemaField, ...]:
        return tuple(
            SchemaField(
                each.id, each.name, each.nullable, each.logical_type, dict(each.metadata), build(each.id), proto
            )
            for each, proto in below.get(parent, ())
        )

    return build(NO_PARENT)


def _flat(fields: Iterable[SchemaField], parent: int) -> Iterator[bytes]:
    for field in fields:
        message = _message().FromString(field.proto)
        message.id, message.parent_id = field.id, parent
        message.name, message.nullable = field.name, field.nullable
        message.metadata.clear()
        message.metadata.update(field.metadata)
        yield message.SerializeToString()
        yield from _flat(field.children, field.id)


@cache
def _message() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="lance_field.proto", package="lance_field", syntax="proto3")
    field = file.message_type.add(name="Field")
    for name, number, kind in (
        ("name", 2, kinds.TYPE_STRING),
        ("id", 3, kinds.TYPE_INT32),
        ("parent_id", 4, kinds.TYPE_INT32),
        ("logical_type", 5, kinds.TYPE_STRING),
        ("nullable", 6, kinds.TYPE_BOOL),
    ):
        field.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    entry = field.nested_type.add(name="MetadataEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    field.field.add(
        name="metadata",
        number=10,
        type=kinds.TYPE_MESSAGE,
        type_name=".lance_field.Field.MetadataEntry",
        label=kinds.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("lance_field.Field"))


def _empty() -> Any:
    import pyarrow as pa

    return pa.schema([])
