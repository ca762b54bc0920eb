"""Commands of administration in processes of their own, which tests kill and stop."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import forks
from tests.tables.lakes import Lake


def start(lake: Lake, table_id: str, *arguments: str, failpoint: str = "") -> subprocess.Popen[bytes]:
    """`tests.tables.admin_worker`, which ends or stops itself at a failure point."""
    return forks.Popen(
        [sys.executable, "-m", "tests.tables.admin_worker", lake.root, table_id, *arguments],
        env=os.environ | ({"DEPLOYER_FAILPOINT": failpoint} if failpoint else {}),
    )
