"""The formats of texts in the JSON Schemas: for each format, a check that returns the fault of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from deployer.errors import InvalidInput
from deployer.platform.text.units import parse_size
from deployer.specs.rules import Rule
from deployer.specs.types.column_names import NameFault, name_fault, path_fault
from deployer.specs.types.parser import BadType, read_type
from deployer.specs.values.target_server import server_of


class FormatFault(NamedTuple):
    """The fault of a text, and what to do. `what` names the text by its label."""

    what: str
    remedy: str
    rule: Rule = Rule.BAD_TEXT


def _column_type(text: object, label: str) -> FormatFault | None:
    read = read_type(str(text))
    return FormatFault(read.what, read.remedy, Rule(read.rule)) if isinstance(read, BadType) else None


def _column_name(fault_of: Callable[[str], NameFault | None], text: object, label: str) -> FormatFault | None:
    fault = fault_of(str(text))  # a later check refuses `_row`
    return FormatFault(f"{label}: {fault.what}", fault.remedy, fault.rule) if fault else None


def _size(size: object, label: str) -> FormatFault | None:
    try:
        parse_size(size)
    except InvalidInput as error:
        return FormatFault(f"{label} cannot be `{size}`", error.remedy)
    return None


def _server(text: object, label: str) -> FormatFault | None:
    try:
        server_of(str(text))
    except InvalidInput as error:
        return FormatFault(f"{label} cannot be `{text}`: {error.what}", error.remedy)
    return None


def _regex(text: object, label: str) -> FormatFault | None:
    try:
        re.compile(str(text))
    except re.error as error:
        what = f"{label} is not a valid regular expression: {error}"
        return FormatFault(what, "write a regular expression for Python's `re`")
    return None


#: the check of each format, by name; it returns the fault of a text, or None; the check of `bytes` also takes numbers
FORMATS: Mapping[str, Callable[[object, str], FormatFault | None]] = {
    "bytes": _size,
    "column-name": partial(_column_name, partial(name_fault, nested=True)),
    "column-path": partial(_column_name, path_fault),
    "column-type": _column_type,
    "regex": _regex,
    "server-uri": _server,
}


def has_format(name: str, text: object) -> bool:
    return FORMATS[name](text, "") is None
