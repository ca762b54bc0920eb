"""The provider for an engine that calls it in its own process."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from deployer.provider.provider import LakeProvider
from deployer.provider.stores import Stores


def in_process_provider(project_dir: Path, allow_destroy: Collection[str] = ()) -> LakeProvider:
    """A provider whose relative roots start from `project_dir`; data of `allow_destroy` may be destroyed."""
    return LakeProvider(Stores(project_dir, allow_destroy))
