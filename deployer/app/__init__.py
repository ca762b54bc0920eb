"""The operations of the commands, for programs: `from deployer.app import plan, apply` (docs/python.md).

Each function, with the libraries that it needs, is loaded at its first use.

`deployer.cli` and `deployer.ui` may import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deployer.app.importing.outcome import ImportedTable
    from deployer.app.operations.apply import ApplyResult, PlanMoved, apply, apply_plan
    from deployer.app.operations.cost import CostResult, cost
    from deployer.app.operations.destroy import DestroyResult, destroy
    from deployer.app.operations.doctor import DoctorResult, PoliciesResult, doctor, write_policies
    from deployer.app.operations.drift import DriftResult, drift
    from deployer.app.operations.explain import Explanation, explain
    from deployer.app.operations.import_tables import ImportResult, import_table, import_tables
    from deployer.app.operations.plan import PlanRefused, PlanResult, plan, save_plan
    from deployer.app.operations.report import ReportResult, report
    from deployer.app.operations.specs import GraphResult, RenderResult, ValidateResult, graph, render, validate
    from deployer.app.reporter import Reporter, SilentReporter

__all__ = [
    "ApplyResult",
    "CostResult",
    "DestroyResult",
    "DoctorResult",
    "DriftResult",
    "Explanation",
    "GraphResult",
    "ImportResult",
    "ImportedTable",
    "PlanMoved",
    "PlanRefused",
    "PlanResult",
    "PoliciesResult",
    "RenderResult",
    "ReportResult",
    "Reporter",
    "SilentReporter",
    "ValidateResult",
    "apply",
    "apply_plan",
    "cost",
    "destroy",
    "doctor",
    "drift",
    "explain",
    "graph",
    "import_table",
    "import_tables",
    "plan",
    "render",
    "report",
    "save_plan",
    "validate",
    "write_policies",
]

_MODULES = {
    **dict.fromkeys(("ApplyResult", "PlanMoved", "apply", "apply_plan"), "operations.apply"),
    **dict.fromkeys(("CostResult", "cost"), "operations.cost"),
    **dict.fromkeys(("DestroyResult", "destroy"), "operations.destroy"),
    **dict.fromkeys(("DoctorResult", "PoliciesResult", "doctor", "write_policies"), "operations.doctor"),
    **dict.fromkeys(("DriftResult", "drift"), "operations.drift"),
    **dict.fromkeys(("Explanation", "explain"), "operations.explain"),
    **dict.fromkeys(("ImportResult", "import_table", "import_tables"), "operations.import_tables"),
    "ImportedTable": "importing.outcome",
    **dict.fromkeys(("PlanRefused", "PlanResult", "plan", "save_plan"), "operations.plan"),
    **dict.fromkeys(("ReportResult", "report"), "operations.report"),
    **dict.fromkeys(
        ("GraphResult", "RenderResult", "ValidateResult", "graph", "render", "validate"), "operations.specs"
    ),
    **dict.fromkeys(("Reporter", "SilentReporter"), "reporter"),
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
