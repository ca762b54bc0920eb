"""A statement of the deploying role's policy, and how to try it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: What a grant is for: the lake itself, or what the stack declares beside it; clusters of either kind, of one; its key.
Part = Literal["lake", "bucket", "table", "clusters", "services", "emr-serverless", "emr", "key"]


@dataclass(frozen=True, slots=True)
class Grant:
    """A statement of the policy, and how to try it.

    `resources` are patterns as the policy has them, `examples` single ARNs that they cover; a request on these has the
    keys in `context`. `expanded` names what a pattern among the `actions` stands for.
    """

    sid: str
    part: Part
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    examples: tuple[str, ...]
    condition: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    context: Mapping[str, str] = field(default_factory=dict)
    expanded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[str, ...]:
        """The actions without patterns, as IAM's simulation wants them."""
        return tuple(call for action in self.actions for call in self.expanded.get(action, (action,)))

    def statement(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": _one_or_all(self.actions),
            "Resource": _one_or_all(self.resources),
        }
        return {**found, "Condition": self.condition} if self.condition else found


def _one_or_all(values: tuple[str, ...]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)
