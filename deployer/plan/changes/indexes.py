"""Changes of a table's indexes."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.specs.model import IndexSpec


@dataclass(frozen=True, slots=True)
class CreateIndex:
    kind = "CreateIndex"
    address: str
    index: IndexSpec


@dataclass(frozen=True, slots=True)
class DropIndex:
    kind = "DropIndex"
    address: str
    index: IndexSpec


@dataclass(frozen=True, slots=True)
class RebuildIndex:
    """Another kind, column or parameter under the same name."""

    kind = "RebuildIndex"

    address: str
    before: IndexSpec
    after: IndexSpec


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """A rename of an unchanged index; both sides have its column by the new name."""

    kind = "RenameIndex"

    address: str
    before: IndexSpec
    after: IndexSpec


IndexChange = CreateIndex | DropIndex | RebuildIndex | RenameIndex
