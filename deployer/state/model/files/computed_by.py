"""The definitions that computed the values of columns in a file, as the text in `File.computed` stores them.

The text has the identity of a definition for Lance's field id of a column, so that renaming a column changes nothing. A
file of merged rows may have several definitions of one column. An empty identity stands for rows without a known
definition: their values are null, or other programs wrote them. `outdated-` stands for values whose inputs were written
after the values were computed.
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

UNKNOWN = ""  #: the identity for rows without a known definition
OUTDATED = "outdated-"  #: the identity for rows whose inputs were written later; as a version, it is `outdated`

Definitions = Mapping[int, tuple[str, ...]]  #: the identities in a file, in alphabetical order, by field id


@lru_cache(maxsize=4096)
def definitions_of(text: str) -> Definitions:
    """Returns the definitions in the text; none for a text that is not valid, so that its rows count as not
    computed."""
    if not text:
        return MappingProxyType({})
    try:
        document = json.loads(text)
        found = {int(field): tuple(map(str, identities)) for field, identities in document.items()}
    except (ValueError, TypeError, AttributeError):
        return MappingProxyType({})
    return MappingProxyType(found)


def to_text(definitions: Definitions) -> str:
    """Returns the text of the definitions as JSON. It is the same for equal definitions, and empty without any."""
    known = {str(field): sorted(set(each)) for field, each in sorted(definitions.items()) if {*each} - {UNKNOWN}}
    return json.dumps(known, ensure_ascii=False, separators=(",", ":")) if known else ""


def joined(texts: Iterable[str]) -> str:
    """Returns the text for a file that has the rows of several files with these texts."""
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
    """Returns the text of a file whose own `text` defines some columns; the definitions of the other columns come from
    `others`, the text of the files whose rows it has."""
    return to_text({**definitions_of(others), **definitions_of(text)})


def without_fields(text: str, fields: Collection[int]) -> str:
    """Returns the text after values of these fields were written without their definitions, or were removed."""
    return to_text({field: each for field, each in definitions_of(text).items() if field not in fields})


def with_outdated(text: str, fields: Collection[int]) -> str:
    """Returns the text after inputs of these fields were written. Fields without a known definition stay without
    one."""
    known = definitions_of(text)
    return to_text({**known, **{field: (OUTDATED,) for field in fields if field in known}})


def is_computed(text: str, field: int, identity: str) -> bool:
    """Returns whether the definition with this identity computed all rows of the field."""
    return definitions_of(text).get(field) == (identity,)


def has_others(text: str, field: int, identity: str) -> bool:
    """Returns whether another definition computed some rows of the field. Values then do not show which definition
    computed a row."""
    return any(each not in (identity, UNKNOWN) for each in definitions_of(text).get(field, ()))


def has_outdated(text: str, field: int) -> bool:
    """Returns whether some rows of the field have inputs that were written after the rows were computed."""
    return OUTDATED in definitions_of(text).get(field, ())


def has_unknown(text: str, field: int) -> bool:
    """Returns whether some rows of the field have no known definition."""
    return UNKNOWN in definitions_of(text).get(field, (UNKNOWN,))


def rows_by_definition(files: Iterable[File], field: int) -> dict[tuple[str, ...], int]:
    """Returns the number of rows in files by their definitions of a field; the key `()` has files without a known
    one."""
    found = Counter[tuple[str, ...]]()
    for file in files:
        found[definitions_of(file.computed).get(field, ())] += file.rows
    return dict(found)
