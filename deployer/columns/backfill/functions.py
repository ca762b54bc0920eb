"""The functions that definitions name, found by one trust in the process that runs them."""

from __future__ import annotations

from deployer.columns.backfill.resolve import FindFunction
from deployer.functions.defined import defined_function
from deployer.functions.model import UDF
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.specs.types.computed import ComputedByUdf
from deployer.specs.types.types import Column
from deployer.tables.open_table import ReadTable


def finder(trusted: TrustedFunctions) -> FindFunction:
    """Returns what finds the functions of definitions in this process. It raises as `defined_function`."""

    def find(table: ReadTable, column: Column, computed: ComputedByUdf) -> UDF:
        otherwise = "; or pass the function: backfill(…, udf=…)"
        return defined_function(table.root, column.name, computed, trusted, where=table.address, otherwise=otherwise)

    return find
