"""Rules that check a plan: built-in rules, Python functions and SQL. Rules in Python import their types from here.

`deployer.app` and `deployer.cli` may import it.
"""

from deployer.policy.python_rules import rule
from deployer.policy.rows import ChangeRow, ColumnRow, Finding, PlanView, ResourceRow

__all__ = ["ChangeRow", "ColumnRow", "Finding", "PlanView", "ResourceRow", "rule"]
