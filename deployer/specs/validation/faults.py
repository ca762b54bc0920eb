"""Checks plain values against parts of the JSON Schema with jsonschema-rs, and returns every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from deployer.specs.schema.document import json_schema
from deployer.specs.validation.branches import Schema, branched
from deployer.specs.validation.formats import FORMATS, has_format

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

#: An error takes 2 to 20 KB of memory. Larger documents, by the number of their values, are first reduced to the parts
#: that have errors.
MOST_VALUES = 50_000
TOO_LARGE = "too-large"  #: the keyword of a Fault for a part that was not checked for errors


class NameOf(NamedTuple):
    """The last part of a path that leads to the name of a property, not to its value."""

    key: str


Path = tuple[str | int | NameOf, ...]


class Fault(NamedTuple):
    """An error: the path from the root to the value, the violated keyword, and the schema with the keyword."""

    path: Path
    keyword: str
    schema: Schema


class Shape:
    """A schema that is compiled at its first use. Its references name definitions of the specs' JSON Schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema: Schema = {**branched(schema), "$defs": _definitions()}

    @cached_property
    def _validator(self) -> Validator:
        from jsonschema_rs import Draft202012Validator, RegexOptions  # takes 10 ms; most commands skip it

        return Draft202012Validator(
            dict(self.schema),
            formats={name: partial(has_format, name) for name in FORMATS},
            validate_formats=True,
            mask="",
            pattern_options=RegexOptions(),  # matches in linear time
            offline=True,
        )

    def is_valid(self, value: Any) -> bool:
        """Returns whether the schema accepts a plain JSON value."""
        try:
            return self._validator.is_valid(value)
        except UnicodeEncodeError:
            return self._validator.is_valid(_encodable(value))

    def faults(self, value: Any) -> list[Fault]:
        """Returns every error of a value; empty for a valid value."""
        if self.is_valid(value):
            return []
        value = _encodable(value)
        if _count(value) > MOST_VALUES and isinstance(value, dict):
            return list(self._faults_of_large(value))
        return list(self._faults(value))

    def _faults(self, value: Any) -> Iterator[Fault]:
        return map(self._fault, self._validator.iter_errors(value))

    def _fault(self, error: ValidationError) -> Fault:
        kind: Any = error.kind
        path: Path = tuple(error.instance_path)
        if kind.name == "propertyNames":
            inner: ValidationError = kind.error
            return self._fault(inner)._replace(path=(*path, NameOf(str(inner.instance))))
        schema: Any = self.schema
        for part in error.schema_path[:-1]:
            schema = schema[part]
        return Fault(path, str(kind.name), schema)

    def _faults_of_large(self, value: dict[str, Any]) -> Iterator[Fault]:
        """Yields the errors of a large object, which is checked without its valid parts.

        An error of `required` may therefore name a property that is valid and was left out.
        """
        budget = MOST_VALUES
        reduced: dict[str, Any] = {}
        places: dict[str, list[int]] = {}
        for name, child in value.items():
            part = self._properties.get(name)
            if part is not None and part.is_valid(child):
                continue
            reduced[name] = child
            if isinstance(child, list) and part is not None and part._items is not None:
                places[name] = [index for index, item in enumerate(child) if not part._items.is_valid(item)]
                for count, index in enumerate(places[name]):
                    budget -= _count(child[index])
                    if budget < 0:
                        places[name] = places[name][:count]
                        yield Fault((name, index), TOO_LARGE, {})
                        break
                reduced[name] = [child[index] for index in places[name]]
            elif part is None:
                reduced[name] = None  # only the name can be wrong
            elif (budget := budget - _count(child)) < 0:
                yield Fault((name,), TOO_LARGE, {})
                del reduced[name]
        for fault in self._faults(reduced):
            match fault.path:
                case (str(name), int(index), *rest) if name in places:
                    yield fault._replace(path=(name, places[name][index], *rest))
                case _:
                    yield fault

    @cached_property
    def _properties(self) -> Mapping[str, Shape]:
        return {name: Shape(child) for name, child in self._resolved(self.schema).get("properties", {}).items()}

    @cached_property
    def _items(self) -> Shape | None:
        items = self._resolved(self.schema).get("items")
        return Shape(items) if items else None

    def _resolved(self, schema: Schema) -> Schema:
        reference = schema.get("$ref")
        found: Schema = self.schema["$defs"][reference.rpartition("/")[2]] if reference else schema
        return found


@cache
def definition_shape(name: str) -> Shape:
    """Returns the shape of a definition of the specs' JSON Schema, such as `Table`."""
    return Shape({"$ref": f"#/$defs/{name}"})


@cache
def _definitions() -> Schema:
    found: Schema = branched({"$defs": json_schema()["$defs"]})["$defs"]
    return found


def _count(value: Any) -> int:
    """Returns the number of values in a value; the value itself and each key count too."""
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1


def _encodable(value: Any) -> Any:
    """Returns the value with `?` instead of halves of surrogate pairs, which JSON allows and Rust's strings do not."""
    if isinstance(value, dict):
        return {_encodable(key): _encodable(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
