"""Commands run in this process outside of pytest's fixtures, as property tests need it."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from tests.cli.conftest import Ran


def ran(*arguments: str) -> Ran:
    """Runs `deployer ARGUMENTS` in the current folder, as `main` runs it."""
    from deployer.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    return Ran(code, out.getvalue(), err.getvalue())
