"""Functions that specs name, `package.module:function`: jobs import them, and nothing else does."""

from __future__ import annotations

from deployer.errors import InvalidFunction, InvalidInput
from deployer.functions.model import UDF
from deployer.platform.isolation.trusted_functions import TrustedFunctions


def load_declared(name: str, trusted: TrustedFunctions, where: str) -> UDF:
    """Imports a function that a column names. `where` is the column.

    Raises Refused for a name that is not trusted (nothing is imported then), InvalidFunction for one that cannot be
    imported or is not decorated by `udf`.
    """
    try:
        found = trusted.load(name, what="the function", where=where)
    except InvalidInput as error:
        raise InvalidFunction(error.what, where=error.where, remedy=error.remedy) from error.__cause__
    if not isinstance(found, UDF):
        raise InvalidFunction(f"the function `{name}` is not a UDF", where=where, remedy="decorate it by @udf")
    return found
