"""A process of its own that reads a table: `reader.py ROOT [VERSION]`; prints the version that it got, or the error."""

from __future__ import annotations

import sys

from deployer.errors import DeployerError
from deployer.state import open_store

TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


def main(root: str, at: int | None = None) -> None:
    try:
        state = open_store(root).table(TABLE, at)
    except DeployerError as error:
        print(f"{type(error).__name__}: {error}")
    else:
        assert state.files.count == state.version - 1, "half a state"
        print(f"state {state.version}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
