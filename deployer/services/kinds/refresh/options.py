"""The options of REFRESH."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.specs.schema.services import all_options, declared_options


@dataclass(frozen=True, slots=True)
class RefreshOptions:
    """The options of REFRESH. With `full`, all rows are computed again.

    `max_rows_per_fragment` is the most rows of a written file; None means the value of the view's storage.
    """

    full: bool = False
    max_rows_per_fragment: int | None = None

    @staticmethod
    def of(declared: Mapping[str, Any]) -> RefreshOptions:
        """Reads options as specs write them; omitted ones have their defaults."""
        options = all_options("REFRESH", declared_options("REFRESH", declared))
        return RefreshOptions(bool(options["full"]), options.get("max_rows_per_fragment"))
