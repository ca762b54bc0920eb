"""The definitions that computed the values of columns in a file: the text in `File.computed`, and what it says.

A definition is known by its identity, and a column by Lance's field id, so that a rename changes nothing. A file of
merged rows may have several definitions of one column. Among them, an empty identity means rows that no definition is
known for: these are null, or were written by others. `outdated-` means values that were computed from inputs that were
written since.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.state.model.files.data_file import File

UNKNOWN = ""  #: the identity of rows that no definition is known for
OUTDATED = "outdated-"  #: that of rows whose inputs were written since they were computed; as a version, `outdated`

Definitions = Mapping[int, tuple[str, ...]]  #: the identities in a file, in alphabetical order, by field id


@lru_cache(maxsize=4096)
def definitions_of(text: str) -> Definitions:
    """Returns what the text says. A text that cannot be read says nothing: its rows count as not computed."""
    if not text:
        return MappingProxyType({})
    try:
        document = json.loads(text)
        found = {int(field): tuple(map(str, identities)) for field, identities in document.items()}
    except (ValueError, TypeError, AttributeError):
        return MappingProxyType({})
    return MappingProxyType(found)


def to_text(definitions: Definitions) -> str:
    """Returns the text that says this: JSON, the same text for the same definitions, empty where there are none."""
    known = {str(field): sorted(set(each)) for field, each in sorted(definitions.items()) if {*each} - {UNKNOWN}}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":")) if known else ""


def joined(texts: Iterable[str]) -> str:
    """Returns the text of a file with the rows of files that have these texts."""
    different = set(texts)
    if len(different) < 2:
        return next(iter(different), "")
    fields = {field for text in different for field in definitions_of(text)}
    return to_text(
        {
            field: tuple({each for text in different for each in definitions_of(text).get(field, (UNKNOWN,))})
            for field in fields
        }
    )


def with_definitions(text: str, identities: Mapping[int, str]) -> str:
    """Returns the text after all rows were computed by the definitions with these identities, by field id."""
    return to_text({**definitions_of(text), **{field: (identity,) for field, identity in identities.items()}})


def with_rows_of(text: str, others: str) -> str:
    """Returns the text of a file that says itself what computed some columns, and has the others from other files."""
    return to_text({**definitions_of(others), **definitions_of(text)})


def without_fields(text: str, fields: Collection[int]) -> str:
    """Returns the text after others wrote values of these fields, or removed them."""
    return to_text({field: each for field, each in definitions_of(text).items() if field not in fields})


def with_outdated(text: str, fields: Collection[int]) -> str:
    """Returns the text after others wrote inputs of these fields; those that no definition is known for stay so."""
    known = definitions_of(text)
    return to_text({**known, **{field: (OUTDATED,) for field in fields if field in known}})


def is_computed(text: str, field: int, identity: str) -> bool:
    """Returns whether all rows are computed by the definition with that identity."""
    return definitions_of(text).get(field) == (identity,)


def has_others(text: str, field: int, identity: str) -> bool:
    """Returns whether some rows are computed by another definition, so that values say nothing about which are."""
    return any(each not in (identity, UNKNOWN) for each in definitions_of(text).get(field, ()))


def has_outdated(text: str, field: int) -> bool:
    """Returns whether some rows were computed from inputs that others wrote since."""
    return OUTDATED in definitions_of(text).get(field, ())


def has_unknown(text: str, field: int) -> bool:
    """Returns whether there are rows that no definition is known for."""
    return UNKNOWN in definitions_of(text).get(field, (UNKNOWN,))


def rows_by_definition(files: Iterable[File], field: int) -> dict[tuple[str, ...], int]:
    """Returns the number of rows in files with the same definitions of a field; `()` has rows of unknown ones."""
    found = Counter[tuple[str, ...]]()
    for file in files:
        found[definitions_of(file.computed).get(field, ())] += file.rows
    return dict(found)
