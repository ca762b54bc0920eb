"""The check of `doctor` for packaged functions: the packages in the lake, and the authors that this environment
trusts."""

from __future__ import annotations

from collections.abc import Callable

from deployer.app.diagnostics.checks import Finding, not_applicable, ok, warning
from deployer.errors import DeployerError
from deployer.platform.isolation.trusted_functions import PACKAGES_VARIABLE, TrustedFunctions
from deployer.platform.text.formatting import count
from deployer.platform.text.visible import visible

_READ = 100  #: the most packages whose authors are read


def packaged_functions(root: str, unready: Callable[[], str] = lambda: "") -> Finding:
    """Reports how many packaged functions the lake has, who wrote them, and which of them jobs of this environment run.

    `root` is empty where it is unknown. `unready` returns why a bucket cannot be read, or an empty text. No code of a
    package runs. Raises InvalidInput for names in the environment that are not valid names of functions.
    """
    trusted = TrustedFunctions.allowed()
    if why := unready():
        return not_applicable(why)
    authors = _authors(root)
    if authors is None and trusted == TrustedFunctions():
        return not_applicable("the lake has no packaged functions")
    trust_text = _trust(trusted)
    stored, by = authors or (0, frozenset[str]())
    what = count(stored, "packaged function") + (f" by {', '.join(map(visible, sorted(by)))}" if by else "")
    details = {"packages": stored, "authors": sorted(by), "trusted_authors": sorted(trusted.authors)}
    if trusted.all_packages:
        return warning(
            f"{what}; {trust_text}: anyone who can write to the lake chooses what runs",
            f"unset {PACKAGES_VARIABLE}, and trust authors or hashes",
            trusts_all=True,
            **details,
        )
    return ok(f"{what}; {trust_text}", trusts_all=False, **details)


def _trust(trusted: TrustedFunctions) -> str:
    if trusted.all_packages:
        return "all of them run here"
    some = [f"functions of {', '.join(map(visible, sorted(trusted.authors)))}"] if trusted.authors else []
    hashes = [name for name in trusted.names if ":" not in name]
    some += [count(len(hashes), "function by its hash", "functions by their hashes")] if hashes else []
    return f"{' and '.join(some)} run here" if some else "none is trusted here, so none runs"


def _authors(root: str) -> tuple[int, frozenset[str]] | None:
    """Returns the number of packages and the authors of the first 100; None without packages."""
    if not root:
        return None
    from deployer.datasets.storage.function_packages import stored_packages

    stored = stored_packages(root)
    if not stored:
        return None
    from deployer.functions.packages.stored import function_info

    authors = set()
    for each in sorted(stored)[:_READ]:
        try:
            authors.add(function_info(root, each)[1])
        except DeployerError:  # a damaged package; a job that needs it reports the damage
            authors.add("(damaged)")
    return len(stored), frozenset(authors)
