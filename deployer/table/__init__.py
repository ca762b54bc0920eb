"""Tables for programs, which `connect(root).open_table(name)` returns.

The class is modelled on the `Table` of Geneva and LanceDB. Its methods call the packages of lower layers.

Programs import it; no other package may import it.
"""

from deployer.errors import ResourcesUnavailable as ResourcesUnavailableError
from deployer.functions import Columns, Fail, Retry, Skip, UnpackedUDF, fail, retry, skip, stop_above, udf
from deployer.table.connection import Connection, connect
from deployer.table.reference import TableReference
from deployer.table.table import Table

__all__ = [
    "Columns",
    "Connection",
    "Fail",
    "ResourcesUnavailableError",
    "Retry",
    "Skip",
    "Table",
    "TableReference",
    "UnpackedUDF",
    "connect",
    "fail",
    "retry",
    "skip",
    "stop_above",
    "udf",
]
