from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tables.lakes import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty instance."""
    return Lake(tmp_path)


@pytest.fixture
def lake_on_s3(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    yield made
    made.store.close()
