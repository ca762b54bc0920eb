"""Functions of users, by their names `package.module:function`, which are imported only where their caller allows it.

A lake's state names such functions, and whoever can write the state chooses the names. So the names count for nothing
until a person or a program that runs here allows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from deployer.errors import InvalidInput, Refused

VARIABLE = "DEPLOYER_TRUSTED_FUNCTIONS"  #: names of trusted functions, parted by commas
FUNCTION = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"  #: `package.module:function`
LONGEST = 256  #: characters of a name


def is_function_name(name: str) -> bool:
    """Returns whether the text is `package.module:function`."""
    return len(name) <= LONGEST and re.fullmatch(FUNCTION, name) is not None


@dataclass(frozen=True, slots=True)
class TrustedFunctions:
    """The functions that may be imported and called in this process; `load` refuses every other."""

    names: frozenset[str] = frozenset()

    @staticmethod
    def allowed(names: Iterable[str] = ()) -> TrustedFunctions:
        """Returns those given, and those of the environment variable DEPLOYER_TRUSTED_FUNCTIONS.

        Raises InvalidInput for a text that is not `package.module:function`.
        """
        if isinstance(names, str):
            raise InvalidInput("the trusted functions are one text", remedy=f"give a list, such as [{names!r}]")
        listed = [name.strip() for name in os.environ.get(VARIABLE, "").split(",")]
        found = frozenset((*names, *(name for name in listed if name)))
        for name in sorted(found, key=str):
            if not isinstance(name, str) or not is_function_name(name):
                raise InvalidInput(
                    f"{name!r} is not the name of a function", remedy="write package.module:function, as specs do"
                )
        return TrustedFunctions(found)

    def load(self, name: str, *, what: str, where: str, otherwise: str = "") -> Callable[..., Any]:
        """Imports the function; `what` describes its use in errors, such as `the embedding function`.

        Raises Refused for a name that is not trusted (nothing is imported then; the remedy also says `otherwise`), and
        InvalidInput for one that cannot be imported or is not a function.
        """
        if name not in self.names:
            raise Refused(
                f"{what} `{name}` is named by the lake and not trusted here, so it does not run",
                where=where,
                remedy=f'if you know its code, allow it: connect(root, trusted_functions=["{name}"]), '
                f"--trust-function {name} or {VARIABLE}={name}{otherwise}",
            )
        module, _, function = name.partition(":")
        try:
            found = getattr(import_module(module), function)
        except AttributeError:
            raise InvalidInput(
                f"{what} `{name}`: the module has no `{function}`", where=where, remedy="correct the name in the spec"
            ) from None
        except Exception as failure:  # whatever the user's module raises while it is imported
            raise InvalidInput(
                f"{what} `{name}` cannot be imported: {type(failure).__name__}: {failure}",
                where=where,
                remedy="install its package in this environment, or add its folder to PYTHONPATH",
            ) from failure
        if not callable(found):
            raise InvalidInput(f"{what} `{name}` is not a function", where=where, remedy="correct the name in the spec")
        called: Callable[..., Any] = found
        return called


NONE_TRUSTED = TrustedFunctions()
