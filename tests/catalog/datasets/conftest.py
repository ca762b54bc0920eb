"""A server of an instance for tests of datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deployer.state import create_store
from tests.catalog.datasets.catalog import Catalog, catalog_at


@pytest.fixture
def root(tmp_path: Path) -> str:
    root = str(tmp_path / "lake")
    create_store(root).close()
    return root


@pytest.fixture
def catalog(root: str, tmp_path: Path) -> Iterator[Catalog]:
    with catalog_at(root, tmp_path) as found:
        yield found
