"""The monthly budget of a lake on AWS."""

from __future__ import annotations

import math

from deployer.cost.assumptions import Assumptions
from deployer.cost.estimate import Holding, StoredData, estimate
from deployer.cost.prices import read_prices
from deployer.specs.model import Lake

LEAST = 25  #: USD
_TIMES, _STEP = 2, 5


def monthly_budget(lake: Lake, region: str) -> int:
    """USD a month, 0 for none: what the instance declares, else twice what its declaration is expected to cost by this
    release's prices and assumptions, without what the tables hold, in steps of 5 and at least `LEAST`."""
    declared = lake.instance.aws.budget
    if declared is not None:
        return declared
    holding = Holding(lake.instance, tuple(StoredData(table, 0) for table in lake.tables), 0)
    expected = estimate(holding, region, read_prices(None), Assumptions())
    return max(LEAST, math.ceil(_TIMES * expected.known / _STEP) * _STEP)
