"""A stack's settings of AWS as JSON. They are no part of the instance's own JSON form, which is that of live state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from deployer.specs.model import AwsSettings


def aws_to_json(settings: AwsSettings) -> dict[str, Any]:
    """What `aws_from_json` reads: settings that are not as unless said."""
    usual = asdict(AwsSettings())
    return {name: value for name, value in asdict(settings).items() if value != usual[name]}


def aws_from_json(form: Any) -> AwsSettings:
    """The inverse of `aws_to_json`. Raises ValueError for an invalid form."""
    made = _made(AwsSettings, form)
    assert isinstance(made, AwsSettings)  # noqa: S101 -- for the type checker
    return made


def _made(kind: Any, form: Any) -> Any:
    """A value of a field's type: a dataclass, a tuple, a scalar, or one of several of these."""
    if get_origin(kind) in (Union, UnionType):
        for each in get_args(kind):
            try:
                return _made(each, form)
            except ValueError:
                continue
    elif is_dataclass(kind) and isinstance(form, Mapping):
        types = get_type_hints(kind)
        if not form.keys() - {field.name for field in fields(kind)}:
            try:
                return kind(**{name: _made(types[name], value) for name, value in form.items()})  # type: ignore[operator]
            except TypeError as error:  # one that is required is not there
                raise ValueError(str(error)) from None
    elif get_origin(kind) is tuple and isinstance(form, list | tuple):
        args = get_args(kind)
        types_of = [args[0]] * len(form) if args[-1] is ... else list(args)
        if len(types_of) == len(form):
            return tuple(_made(each, value) for each, value in zip(types_of, form, strict=True))
    elif isinstance(kind, type) and isinstance(form, kind) and (not isinstance(form, bool) or kind is bool):
        return form
    raise ValueError(f"{form!r:.60} is not a valid {getattr(kind, '__name__', kind)}")
