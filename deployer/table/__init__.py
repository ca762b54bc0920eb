"""Tables as programs use them: `connect(root).open_table(name)`, after Geneva's and LanceDB's `Table`.

It offers as methods what the packages below do.

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
