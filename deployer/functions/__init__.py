"""Functions that compute columns: declared by `udf`, checked against a table, called by jobs, stored beside the tables.

It uses Arrow and the types of specs; its callers use Lance and the state.

Every layer above it may import it.
"""

from deployer.functions.binding import BoundOutput, UnpackedUDF, bind_inputs, bind_transforms
from deployer.functions.calls.caller import Caller
from deployer.functions.columns import Columns
from deployer.functions.declaration.decorator import udf
from deployer.functions.error_policy import ErrorPolicy, Fail, Retry, Skip, fail, retry, skip, stop_above
from deployer.functions.model import UDF, Computed, Failure, Output

__all__ = [
    "UDF",
    "BoundOutput",
    "Caller",
    "Columns",
    "Computed",
    "ErrorPolicy",
    "Fail",
    "Failure",
    "Output",
    "Retry",
    "Skip",
    "UnpackedUDF",
    "bind_inputs",
    "bind_transforms",
    "fail",
    "retry",
    "skip",
    "stop_above",
    "udf",
]
