"""Pure planning: the changes of a plan, their risks and causes, and how they are shown.

Every layer above it may import it.
"""

from deployer.plan.assess.risk import Risk, assess
from deployer.plan.diff.lakes import diff
from deployer.plan.model import Foreign, Plan, PlannedChange, ResourcePlan
from deployer.plan.planning.planner import make_plan

__all__ = ["Foreign", "Plan", "PlannedChange", "ResourcePlan", "Risk", "assess", "diff", "make_plan"]
