"""Tokens of catalogs from the environment of the publishing process. Targets of other packages use this module too."""

from __future__ import annotations

import os

from deployer.errors import InvalidInput
from deployer.specs.values.target_server import require_token_variable


def read_token(variable: str) -> str:
    """Returns the token in an environment variable that specs or the state name.

    Raises InvalidInput for a variable that is not for tokens (`DEPLOYER_TOKEN_…`), and for one without a token.
    """
    require_token_variable(variable)
    token = os.environ.get(variable, "")
    if not token or not token.isascii() or not token.isprintable():
        raise InvalidInput(
            f"the environment variable {variable} holds no token",
            remedy="set it to the bearer token in the environment of the run, or leave `token_variable` out",
        )
    return token
