"""The settings of a stack that its jobs on clusters get as environment variables: the hosts to which jobs may send
data, and the functions that they may run.

Tokens are never among them, because AWS shows the variables of a job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from deployer.errors import InvalidInput
from deployer.platform.isolation.trusted_functions import (
    AUTHORS_VARIABLE,
    HASH,
    PACKAGES_VARIABLE,
    VARIABLE,
    TrustedFunctions,
    is_function_name,
)
from deployer.specs.values.target_server import HOSTS_VARIABLE, read_hosts

#: The environment variable of each setting `deployer:NAME`, by NAME.
VARIABLES: Mapping[str, str] = {
    "target_hosts": HOSTS_VARIABLE,
    "trusted_functions": VARIABLE,
    "trusted_authors": AUTHORS_VARIABLE,
    "trust_udfs": PACKAGES_VARIABLE,
}
_FLAGS = {"true": "1", "false": ""}


def job_settings(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of a stack that its jobs get, without empty settings."""
    return {name: text for name in VARIABLES if (text := str(values.get(name) or "").strip())}


def job_variables(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables of jobs. Raises InvalidInput for an invalid setting."""
    found = job_settings(values)
    read_hosts(found.get("target_hosts", "").split(","), "deployer:target_hosts")
    trusted_on_clusters(values)
    if "trust_udfs" in found:
        found["trust_udfs"] = _FLAGS[found["trust_udfs"]]
    return {VARIABLES[name]: text for name, text in found.items() if text}


def trusted_on_clusters(values: Mapping[str, str]) -> TrustedFunctions:
    """Returns the functions that jobs of the stack may run. Raises InvalidInput for an invalid setting."""
    found = job_settings(values)
    names = _listed(found.get("trusted_functions", ""))
    for name in sorted(names):
        if not is_function_name(name) and not re.fullmatch(HASH, name):
            raise InvalidInput(
                f"{name!r} is not the name of a function",
                where="deployer:trusted_functions",
                remedy="write package.module:function, as specs do, or the hash of a packaged function; several with "
                "commas between them",
            )
    every = found.get("trust_udfs", "false")
    if every not in _FLAGS:
        raise InvalidInput(
            f"{every!r} is neither true nor false", where="deployer:trust_udfs", remedy="write true or false"
        )
    return TrustedFunctions(names, _listed(found.get("trusted_authors", "")), every == "true")


def _listed(text: str) -> frozenset[str]:
    return frozenset(name for each in text.split(",") if (name := each.strip()))
