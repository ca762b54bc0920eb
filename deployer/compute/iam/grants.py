"""The statements of policies for people and pipelines, with example requests to check them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: The part of a lake that a grant is for: the lake itself, or a resource that the stack declares beside it.
Part = Literal[
    "lake", "bucket", "table", "clusters", "emr-serverless", "emr", "key", "new-key", "services", "alarms", "budget"
]
Condition = Mapping[str, Mapping[str, str | tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Grant:
    """A statement of the policy, with example requests.

    `resources` are the patterns of the policy, and `examples` are single ARNs that they cover. A request for an example
    has the condition keys in `context`. `expanded` has the actions that a pattern among `actions` stands for.
    """

    sid: str
    part: Part
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    examples: tuple[str, ...]
    condition: Condition = field(default_factory=dict)
    context: Mapping[str, str] = field(default_factory=dict)
    expanded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def calls(self) -> tuple[str, ...]:
        """The actions without patterns, as IAM's policy simulation requires them."""
        return tuple(call for action in self.actions for call in self.expanded.get(action, (action,)))

    def statement(self) -> dict[str, Any]:
        """Returns the grant in IAM's form."""
        found: dict[str, Any] = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": one_or_all(self.actions),
            "Resource": one_or_all(self.resources),
        }
        if self.condition:
            found["Condition"] = {
                kind: {key: one_or_all((value,) if isinstance(value, str) else value) for key, value in keys.items()}
                for kind, keys in self.condition.items()
            }
        return found


def equals(*keys: Mapping[str, str]) -> Condition:
    """Returns the condition that each key has its value."""
    return {"StringEquals": {name: value for each in keys for name, value in each.items()}}


def of(service: str, actions: Iterable[str], what: str = "") -> tuple[str, ...]:
    """Returns the full names of actions, such as `sqs:CreateQueue` for `sqs` and `CreateQueue`. `what` is appended to
    each name."""
    return tuple(f"{service}:{action}{what}" for action in actions)


def one_or_all(values: tuple[str, ...]) -> str | list[str]:
    """Returns the values in the form that policies use: a single value by itself, several values as a list."""
    return values[0] if len(values) == 1 else list(values)
