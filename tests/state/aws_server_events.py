"""What moto's EventBridge lacks: targets that are topics, which get what the rule makes of the event."""

from __future__ import annotations

import json
from typing import Any

from moto.events.models import Rule
from moto.sns.models import sns_backends

_send = Rule.send_to_targets


def _said(target: dict[str, Any], event: Any) -> str:
    """The event as JSON, or what a template makes of it; moto's own way wants one more package."""
    if "InputTransformer" not in target:
        return json.dumps(event)
    text = target["InputTransformer"]["InputTemplate"]
    for name, path in target["InputTransformer"]["InputPathsMap"].items():
        found = event
        for key in path.removeprefix("$.").split("."):
            found = found[key]
        text = text.replace(f"<{name}>", str(found))
    return str(json.loads(text))


def send_to_targets(self: Rule, original_event: Any, transform_input: bool = True) -> None:
    topics = [each for each in self.targets if each["Arn"].split(":")[2] == "sns"]
    if topics and self.event_pattern.matches_event(original_event):
        for target in topics:
            _, _, _, region, account, _ = target["Arn"].split(":", 5)
            sns_backends[account][region].topics[target["Arn"]].publish(_said(target, original_event))
    kept, self.targets = self.targets, [each for each in self.targets if each not in topics]
    try:
        templates = any("InputTransformer" in each for each in self.targets)
        _send(self, original_event, transform_input and templates)
    finally:
        self.targets = kept


def extend() -> None:
    """Puts it in."""
    rule: Any = Rule
    rule.send_to_targets = send_to_targets
