import os

import pytest


@pytest.fixture
def update_golden() -> bool:
    """`UPDATE_GOLDEN=1 pytest tests/specs` writes the golden files anew; read the difference before committing it."""
    return os.environ.get("UPDATE_GOLDEN") == "1"
