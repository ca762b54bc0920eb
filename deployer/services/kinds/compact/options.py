"""The options of COMPACT as values. The schema of specs has already checked them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.runs.rewriting.tasks import Sizes, Strategy
from deployer.specs.schema.services import all_options


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """The options of COMPACT, with sizes in bytes. A `target_rows` of None means the table's `max_rows_per_file`."""

    target_file_bytes: int = 256_000_000
    target_rows: int | None = None
    strategy: Strategy = "size"
    min_files: int = 2
    max_deleted_share: float = 0.1
    portion_bytes: int = 1_000_000_000

    @staticmethod
    def of(declared: Mapping[str, Any]) -> CompactOptions:
        """Reads options in canonical form (see `deployer.specs.schema.services`); omitted ones have their defaults."""
        return CompactOptions(**all_options("COMPACT", declared))

    def sizes(self, table_rows: int) -> Sizes:
        """Returns the sizes for a table whose files have at most `table_rows` rows."""
        return Sizes(
            self.target_file_bytes,
            min(self.target_rows or table_rows, table_rows),
            self.min_files,
            self.max_deleted_share,
            max(self.portion_bytes, self.target_file_bytes),
            self.strategy,
        )
