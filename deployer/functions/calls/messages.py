"""Messages between a job and the process that calls its function: results, and exceptions with their tracebacks."""

from __future__ import annotations

import builtins
import pickle
from typing import Any

import cloudpickle

VALUE, ERROR, READY = "value", "error", "ready"


def packed(kind: str, value: Any = None) -> bytes:
    """Returns a message. Raises what pickling the value raises."""
    return bytes(cloudpickle.dumps((kind, value)))


def packed_error(error: BaseException, traceback: str) -> bytes:
    """Returns a message of an exception; one that cannot be carried becomes one of its name and its built-in base."""
    try:
        data = cloudpickle.dumps(error)
        pickle.loads(data)  # noqa: S301 -- of this process; some exceptions can be written and not read
    except Exception:
        data = cloudpickle.dumps(_stand_in(error))
    return packed(ERROR, (data, traceback))


def unpacked(message: bytes) -> tuple[str, Any]:
    """Returns the kind and the value of a message; of an exception with the attribute `deployer_traceback`.

    The sender runs code that its user trusts, and so does the receiver.
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
    except Exception:  # a built-in one that is not made of a text
        made = type(type(error).__name__, (Exception,), {})(str(error))
    return made if isinstance(made, Exception) else Exception(str(error))
