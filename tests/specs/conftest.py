import os

import pytest
from hypothesis import settings

settings.register_profile("specs", deadline=None)  # machines are busy
settings.load_profile("specs")


@pytest.fixture
def update_golden() -> bool:
    """`UPDATE_GOLDEN=1 pytest tests/specs` writes the golden files anew; read the difference before committing it."""
    return os.environ.get("UPDATE_GOLDEN") == "1"
