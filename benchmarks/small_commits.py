"""A table that exists only in the state store, and the commits that benchmarks make to it."""

from __future__ import annotations

from pathlib import Path

from deployer.state import create_store
from deployer.state.log.updates import CreateTable
from deployer.state.model.entities import File, TableProperties

TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


def file_of(number: int) -> File:
    """Returns the record of a file that an append of ten rows writes."""
    low, high = number.to_bytes(8, "big"), (number + 1).to_bytes(8, "big")
    return File(number, "root", 10, 1000, low, high, (low,), (high,), sorted=True)


def create_state(root: str | Path) -> None:
    create_store(root).commit(TABLE, [CreateTable(TableProperties(row_keys=("id",)), b"schema", 1)])
