"""Pure planning: what must change, how risky it is, what caused it, and how to show it.

Every layer above it may import it.
"""

from deployer.plan.assess.risk import Risk, assess
from deployer.plan.diff.lakes import diff
from deployer.plan.model import Foreign, Plan, PlannedChange, ResourcePlan
from deployer.plan.planning.planner import make_plan

__all__ = ["Foreign", "Plan", "PlannedChange", "ResourcePlan", "Risk", "assess", "diff", "make_plan"]
