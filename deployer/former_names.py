"""Names that modules had in earlier releases, so that programs and scripts that import them keep working.

Projects of earlier releases have a program of their own (`stacks/*.py`), and the documentation named some modules. The
finder is the last one that Python asks: it costs nothing where a module is found. Each import warns with the new name.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

#: The present name of each. Of several, what it had is in several modules now; `Told=EventRule` is a class that has
#: another name now.
FORMER: Mapping[str, str] = {
    "deployer.compute.arns": "deployer.platform.aws.arns",
    "deployer.compute.aws_access": "deployer.compute.iam.jobs deployer.compute.clusters",
    "deployer.compute.aws_alarms": "deployer.compute.schedules.alarms Told=EventRule",
    "deployer.compute.aws_cron": "deployer.compute.schedules.cron",
    "deployer.compute.aws_names": "deployer.platform.aws.names",
    "deployer.compute.aws_schedules": "deployer.compute.schedules.schedules Scheduled=ScheduledService",
    "deployer.compute.bucket_access": "deployer.compute.iam.bucket",
    "deployer.compute.emr_access": "deployer.compute.iam.emr",
    "deployer.compute.emr_flow": "deployer.compute.emr.flow",
    "deployer.compute.submission": "deployer.compute.emr.settings",
    "deployer.compute.job_code": "deployer.compute.jobs.code",
    "deployer.compute.job_package": "deployer.compute.packaging.package",
    "deployer.compute.key_access": "deployer.compute.iam.key",
    "deployer.compute.told": (
        "deployer.compute.jobs.status Told=JobStatus Started=StartedJob read_told=read_status tell=write_status"
    ),
    "deployer.cost.budget": "deployer.cost.estimate",
    "deployer.graph": "deployer.plan.graph",
    "deployer.specs.glue": "deployer.specs.values.glue",
    "deployer.state.dynamodb_items": "deployer.state.backends.dynamodb.items",
    "deployer.state.dynamodb_table": "deployer.state.backends.dynamodb.table",
    "deployer.services.metasync.target": "deployer.services.kinds.metasync.targets.target",
    "deployer.services.reading": "deployer.services.savepoints.read_lease",
    "deployer.tables.dataset": "deployer.tables.open_table",
    "deployer.tables.deletion": "deployer.tables.admin.deletion",
    "deployer.tables.leaf_split": "deployer.tables.layout.partitions.split",
    "deployer.tables.naming": "deployer.tables.admin.naming",
    "deployer.tables.partition_sizes": "deployer.tables.layout.partitions.sizes",
    "deployer.tables.reinitialise": "deployer.tables.evolution.rewrite.truncate",
    "deployer.tables.split_estimate": "deployer.tables.importing.split_estimate",
    "deployer.tables.table": "deployer.tables.read.table",
}


class FormerNames:
    """Imports a module under its former name: it is the same module as under its present one.

    The base classes of `importlib.abc` are left out: to import them takes 11 ms.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in FORMER else None  # type: ignore[arg-type] # see above

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        present = [each for each in FORMER[spec.name].split() if "=" not in each]
        renamed = dict(each.split("=") for each in FORMER[spec.name].split() if "=" in each)
        warnings.warn(f"{spec.name} is called {' and '.join(present)} now", DeprecationWarning, stacklevel=2)
        found = [import_module(each) for each in present]
        module = found[0]
        if len(found) > 1 or renamed:
            module = ModuleType(spec.name)
            for each in reversed(found):
                module.__dict__.update({name: value for name, value in vars(each).items() if not name.startswith("__")})
            module.__dict__.update({former: vars(module)[name] for former, name in renamed.items()})
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already. Python gave it the spec of its former name, which is taken back."""
        former = module.__spec__
        if former is not None:
            module.__spec__ = former.loader_state


def install() -> None:
    if not any(isinstance(each, FormerNames) for each in sys.meta_path):
        sys.meta_path.append(FormerNames())
