"""Pure planning: what must change, how risky it is, what caused it, and how to show it."""

from deployer.plan.diff import diff
from deployer.plan.plan import Foreign, Plan, PlannedChange, ResourcePlan, make_plan
from deployer.plan.risk import Risk, assess

__all__ = ["Foreign", "Plan", "PlannedChange", "ResourcePlan", "Risk", "assess", "diff", "make_plan"]
