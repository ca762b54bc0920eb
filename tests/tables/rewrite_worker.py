"""Brings a table up to a spec, as `deployer up` does, in a process that tests kill: ROOT TABLE_ID, spec on stdin."""

from __future__ import annotations

import json
import sys

from deployer.errors import DeployerError
from deployer.specs.serialized.specs import table_from_json
from deployer.state import open_store
from deployer.tables.admin.tables import update_table


def main(root: str, table_id: str) -> int:
    try:
        update_table(open_store(root), root, table_id, table_from_json(json.load(sys.stdin)))
    except DeployerError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
