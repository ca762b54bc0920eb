"""Table services, savepoints, and the client that manages services.

Every layer above it may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.services.api.client import TableServicesClient

__all__ = ["TableServicesClient"]


def __getattr__(name: str) -> Any:
    # The client imports all services; an import of one service loads no others.
    if name == "TableServicesClient":
        from deployer.services.api.client import TableServicesClient

        return TableServicesClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
