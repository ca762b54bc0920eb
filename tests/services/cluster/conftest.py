from __future__ import annotations

from tests.services.compact.conftest import lake

__all__ = ["lake"]
