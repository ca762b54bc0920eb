from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from deployer.specs.model import Embedding, IndexSpec
from deployer.table import Table, connect
from deployer.tables.admin.tables import create_table
from tests.search.articles import ARTICLES
from tests.tables.indexed import Indexed
from tests.tables.lakes import Lake

EMBEDDING = Embedding("tests.search.hash_embedding:vectors", "remark", "embedding")


class Opened(Protocol):
    """Creates the table of `tests.tables.indexed` with these indexes and opens it."""

    def __call__(
        self,
        *indexes: IndexSpec,
        embedding: Embedding | None = None,
        trusted: tuple[str, ...] = (),
        storage: str = "2.1",
    ) -> tuple[Indexed, Table]: ...


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty instance."""
    return Lake(tmp_path)


@pytest.fixture
def opened(lake: Lake) -> Iterator[Opened]:
    with ExitStack() as stack:

        def create(
            *indexes: IndexSpec, embedding: Embedding | None = None, trusted: tuple[str, ...] = (), storage: str = "2.1"
        ) -> tuple[Indexed, Table]:
            made = Indexed(lake, indexes, storage)
            if embedding is not None:
                made.spec = replace(made.spec, embedding=embedding)
                made.apply()
            connection = stack.enter_context(connect(lake.root, trusted_functions=trusted))
            return made, connection.open_table("flights")

        yield create


@pytest.fixture
def articles(lake: Lake) -> Iterator[Table]:
    """The empty table of ARTICLES, open."""
    create_table(lake.store, lake.root, ARTICLES, "tests/dev")
    with connect(lake.root) as connection:
        yield connection.open_table("articles")
