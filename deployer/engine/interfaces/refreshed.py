"""What a preview's refresh read, for the run that applies what was previewed: live state is read once for both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from deployer.engine.interfaces.provider import Live
from deployer.engine.values.resource import ResourceState


@dataclass(frozen=True)
class Refreshed:
    """By URN and id, the records that providers were asked about, and what they answered."""

    answers: Mapping[tuple[str, str], tuple[ResourceState, Live]] = field(default_factory=dict)

    def answer(self, state: ResourceState) -> Live | None:
        """What was read of a resource; None where its record is another one now.

        A record with secrets always is: a preview has them sealed, and its provider was not told of them.
        """
        asked, live = self.answers.get((state.urn, state.id), (None, None))
        same = asked is not None and (asked.inputs, asked.outputs) == (state.inputs, state.outputs)
        return live if same else None

    def without(self, ids: Collection[str]) -> Refreshed:
        """The same without what was read of resources with these ids, which have changed since."""
        return Refreshed({key: answer for key, answer in self.answers.items() if key[1] not in ids})
