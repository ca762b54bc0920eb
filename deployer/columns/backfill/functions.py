"""The function that a column's definition names: imported or unpickled only where it is trusted."""

from __future__ import annotations

from deployer.columns.backfill.resolve import FindFunction
from deployer.errors import InvalidInput
from deployer.functions.declaration.decorator import udf
from deployer.functions.model import UDF
from deployer.functions.packages.stored import load_function
from deployer.platform.isolation.trusted_functions import TrustedFunctions, is_function_name
from deployer.specs.types.computed import ComputedByUdf
from deployer.specs.types.types import Column
from deployer.tables.open_table import ReadTable


def finder(trusted: TrustedFunctions) -> FindFunction:
    """Returns what finds the functions of definitions in this process.

    It raises Refused for a function that is not trusted: nothing is imported then; InvalidInput for one that cannot be
    imported or is not a function.
    """

    def find(table: ReadTable, column: Column, computed: ComputedByUdf) -> UDF:
        if computed.function:
            return load_function(table.root, computed.function, trusted)
        if not is_function_name(computed.udf):
            raise InvalidInput(
                f"the function `{computed.udf}` of column {column.name} is not `package.module:function`",
                where=table.address,
                remedy="pass the function: backfill(…, udf=…)",
            )
        found = trusted.load(
            computed.udf, what=f"the function of column {column.name}", where=table.address, otherwise="; or pass udf="
        )
        return found if isinstance(found, UDF) else udf(found)

    return find
