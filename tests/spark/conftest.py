from __future__ import annotations

from pathlib import Path

import pytest

from tests.tables.lakes import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """An empty instance."""
    return Lake(tmp_path)
