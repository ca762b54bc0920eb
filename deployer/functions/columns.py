"""Functions that make several columns: their result is annotated as `Columns[T]`."""

from __future__ import annotations

from typing import Annotated, TypeVar

T = TypeVar("T")
COLUMNS = "deployer: one column per field"

#: The result of a function that makes a column per field of T, a NamedTuple, a dataclass or a model of pydantic:
#: `def size(image: bytes) -> Columns[Size]`. To type checkers it is T.
Columns = Annotated[T, COLUMNS]
