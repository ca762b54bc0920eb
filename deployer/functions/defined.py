"""Loads the function that the definition of a column names. It is imported or unpickled only where it is trusted."""

from __future__ import annotations

from deployer.errors import InvalidInput, Refused
from deployer.functions.declaration.decorator import udf
from deployer.functions.model import UDF
from deployer.functions.packages.stored import load_function
from deployer.platform.isolation.trusted_functions import TrustedFunctions, is_function_name
from deployer.specs.types.computed import ComputedByUdf


def defined_function(
    root: str, column: str, computed: ComputedByUdf, trusted: TrustedFunctions, *, where: str, otherwise: str
) -> UDF:
    """Returns the function that computes a column: a package below the root, or `package.module:function`.

    Errors name `where`, and their remedies add `otherwise`. Raises Refused, before anything is imported, for a function
    that is not trusted here, and InvalidInput for a name that cannot be imported or is not a function.
    """
    if computed.function:
        try:
            return load_function(root, computed.function, trusted)
        except Refused as refused:
            raise Refused(refused.what, where=where, remedy=f"{refused.remedy}{otherwise}") from None
    if not is_function_name(computed.udf):
        raise InvalidInput(
            f"the function `{computed.udf}` of column {column} is not `package.module:function`",
            where=where,
            remedy=f"correct the name in the spec{otherwise}",
        )
    what = f"the function of column {column}"
    found = trusted.load(computed.udf, what=what, where=where, otherwise=otherwise)
    return found if isinstance(found, UDF) else udf(found)
