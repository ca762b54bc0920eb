"""Messages between a job and the process that calls its function: results, and exceptions with their tracebacks."""

from __future__ import annotations

import builtins
import pickle
from typing import Any

import cloudpickle

VALUE, ERROR, READY = "value", "error", "ready"


def packed(kind: str, value: Any = None) -> bytes:
    """Returns the message for a value. Raises the errors of pickling."""
    return bytes(cloudpickle.dumps((kind, value)))


def packed_error(error: BaseException, traceback: str) -> bytes:
    """Returns the message for an exception. An exception that cannot be pickled is replaced by one with its name and
    its built-in base class."""
    try:
        data = cloudpickle.dumps(error)
        pickle.loads(data)  # noqa: S301 -- of this process; some exceptions can be written and not read
    except Exception:
        data = cloudpickle.dumps(_stand_in(error))
    return packed(ERROR, (data, traceback))


def unpacked(message: bytes) -> tuple[str, Any]:
    """Returns the kind and the value of a message.

    An exception has the attribute `deployer_traceback`. Unpickling is safe, because sender and receiver run code that
    the same user trusts.
    """
    kind, value = pickle.loads(message)  # noqa: S301 -- see above
    if kind != ERROR:
        return kind, value
    error = pickle.loads(value[0])  # noqa: S301 -- see above
    error.deployer_traceback = value[1]
    return kind, error


def _stand_in(error: BaseException) -> Exception:
    base = next((each for each in type(error).__mro__ if getattr(builtins, each.__name__, None) is each), Exception)
    try:
        made = type(type(error).__name__, (base,), {})(str(error))
    except Exception:  # a built-in exception that cannot be made from a text
        made = type(type(error).__name__, (Exception,), {})(str(error))
    return made if isinstance(made, Exception) else Exception(str(error))
