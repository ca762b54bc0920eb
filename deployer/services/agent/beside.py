"""Work of an agent in addition to the services of tables. Higher layers provide it."""

from __future__ import annotations

from typing import Protocol


class Beside(Protocol):
    """Work in separate processes. Its length is the number of running processes."""

    def __len__(self) -> int: ...

    def look(self, now: int) -> None:
        """Starts due work at `now` (ms). Raises DeployerError when the state cannot be read."""

    def reap(self) -> None:
        """Reports the processes that have ended."""

    def stop(self) -> None:
        """Stops the processes as Ctrl-C would."""

    def kill(self) -> None:
        """Kills processes that do not end."""


class Nothing:
    """No work."""

    def __len__(self) -> int:
        return 0

    def look(self, now: int) -> None: ...

    def reap(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...
