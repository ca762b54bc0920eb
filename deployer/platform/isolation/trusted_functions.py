"""Functions of users, which run only where their caller allows it: by name `package.module:function`, or packaged.

A lake's state names such functions, and anyone who can write the state chooses the names. So a name is trusted only
after a person or a program that runs here allows it. A packaged function is allowed by its hash, by its author, or
because all are allowed. Anyone who can write to the lake can write any author's name: to trust an author is to trust
everyone who can write there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from deployer.errors import InvalidInput, Refused
from deployer.platform.text.visible import visible

VARIABLE = "DEPLOYER_TRUSTED_FUNCTIONS"  #: names of trusted functions, and hashes of packaged ones, separated by commas
AUTHORS_VARIABLE = "DEPLOYER_TRUSTED_AUTHORS"  #: authors whose packaged functions are trusted, separated by commas
PACKAGES_VARIABLE = "DEPLOYER_TRUST_UDFS"  #: `1` trusts all packaged functions
HASH = r"[0-9a-f]{64}"  #: of a packaged function
FUNCTION = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"  #: `package.module:function`
LONGEST = 256  #: characters of a name


def is_function_name(name: str) -> bool:
    """Returns whether the text is `package.module:function`."""
    return len(name) <= LONGEST and re.fullmatch(FUNCTION, name) is not None


@dataclass(frozen=True, slots=True)
class TrustedFunctions:
    """The functions that may run in this process; `load` and `require_package` refuse all others.

    `names` are `package.module:function`, and hashes of packaged functions. `authors` are those whose packaged
    functions are trusted, `all_packages` trusts all packaged functions.
    """

    names: frozenset[str] = frozenset()
    authors: frozenset[str] = frozenset()
    all_packages: bool = False

    @staticmethod
    def allowed(
        names: Iterable[str] = (), *, authors: Iterable[str] = (), all_packages: bool = False
    ) -> TrustedFunctions:
        """Returns the given functions, and those of the environment variables DEPLOYER_TRUSTED_FUNCTIONS,
        DEPLOYER_TRUSTED_AUTHORS and DEPLOYER_TRUST_UDFS.

        Raises InvalidInput for a text that is neither `package.module:function` nor a hash.
        """
        found = _listed(names, VARIABLE, "the trusted functions")
        for name in sorted(found, key=str):
            if not isinstance(name, str) or not (is_function_name(name) or re.fullmatch(HASH, name)):
                raise InvalidInput(
                    f"{name!r} is not the name of a function",
                    remedy="write package.module:function, as specs do, or the hash of a packaged function",
                )
        every = all_packages or os.environ.get(PACKAGES_VARIABLE, "").strip().lower() in ("1", "true", "yes")
        return TrustedFunctions(found, _listed(authors, AUTHORS_VARIABLE, "the trusted authors"), every)

    def require_package(self, package_hash: str, author: str, name: str, where: str) -> None:
        """Raises Refused for a packaged function that is not trusted; `where` names it."""
        if self.all_packages or package_hash in self.names or author in self.authors:
            return
        raise Refused(
            f"`{visible(name)}` is code that {visible(author)} packaged in the lake, and not trusted here, so it does "
            "not run",
            where=where,
            remedy=f"if you know its code, allow it: --trust-function {package_hash}; if you trust all who can "
            f"write to the lake, allow its author by {AUTHORS_VARIABLE}=NAME, or all of them by `deployer "
            "--trust-udfs` or "
            f"{PACKAGES_VARIABLE}=1",
        )

    def require_name(self, name: str, *, what: str, where: str, otherwise: str = "") -> None:
        """Raises Refused for a function `package.module:function` that is not trusted; see `load`."""
        if name not in self.names:
            raise Refused(
                f"{what} `{name}` is named by the lake and not trusted here, so it does not run",
                where=where,
                remedy=f'if you know its code, allow it: connect(root, trusted_functions=["{name}"]), '
                f"--trust-function {name} or {VARIABLE}={name}{otherwise}",
            )

    def load(self, name: str, *, what: str, where: str, otherwise: str = "") -> Callable[..., Any]:
        """Imports the function; `what` describes its use in errors, such as `the embedding function`.

        Raises Refused, before any import, for a name that is not trusted; the remedy includes `otherwise`. Raises
        InvalidInput for a name that cannot be imported or is not a function.
        """
        self.require_name(name, what=what, where=where, otherwise=otherwise)
        module, _, function = name.partition(":")
        try:
            found = getattr(import_module(module), function)
        except AttributeError:
            raise InvalidInput(
                f"{what} `{name}`: the module has no `{function}`", where=where, remedy="correct the name in the spec"
            ) from None
        except Exception as failure:  # the user's module may raise any exception while it is imported
            raise InvalidInput(
                f"{what} `{name}` cannot be imported: {type(failure).__name__}: {failure}",
                where=where,
                remedy="install its package in this environment, or add its folder to PYTHONPATH",
            ) from failure
        if not callable(found):
            raise InvalidInput(f"{what} `{name}` is not a function", where=where, remedy="correct the name in the spec")
        called: Callable[..., Any] = found
        return called


def _listed(given: Iterable[str], variable: str, what: str) -> frozenset[str]:
    if isinstance(given, str):
        raise InvalidInput(f"{what} are one string", remedy=f"give a list, such as [{given!r}]")
    listed = [name.strip() for name in os.environ.get(variable, "").split(",")]
    return frozenset((*given, *(name for name in listed if name)))


NONE_TRUSTED = TrustedFunctions()
