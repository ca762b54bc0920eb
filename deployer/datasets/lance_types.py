"""Lance's own types, for annotations of functions that take a dataset: only `deployer.datasets` imports Lance.

Import them under TYPE_CHECKING: they do not exist at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceDataset as LanceDataset
    from lance import LanceFragment as LanceFragment
    from lance import LanceOperation as LanceOperation
