"""Work that an agent does beside the services of tables, which the layers above give it."""

from __future__ import annotations

from typing import Protocol


class Beside(Protocol):
    """Work in processes of its own. Its length is how many of them run."""

    def __len__(self) -> int: ...

    def look(self, now: int) -> None:
        """Starts what is due at `now` (ms). Raises DeployerError when the state cannot be read."""

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
