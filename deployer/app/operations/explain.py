"""`explain`: the meaning of an error, a service or a change, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from deployer.errors import NotFound
from deployer.specs.yaml.suggestions import nearest
from deployer.state.model.services import EXCLUDES

FILE = "explanations.yaml"  #: in the package `deployer.app`
TopicKind = Literal["error", "service", "change"]
#: services with their own page
_SERVICE_PAGES = {
    **{
        name: f"{name.lower()}.md"
        for name in ("COMPACT", "CLUSTER", "CLEAN", "METASYNC", "INGEST", "EXPIRE", "BACKFILL")
    },
    "REFRESH": "views.md",
    "AUTOSAVEPOINT": "savepoints.md",
    "RESTORE": "savepoints.md",
    "LOAD_COLUMNS": "columns.md",
}
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one topic. `facts` are lines such as `risk: safe`, `text` is what it does or means, `advice`
    is what to do, and `page` is the page of the documentation with more."""

    kind: TopicKind
    name: str
    text: str
    advice: str
    facts: Mapping[str, str]
    page: str

    def to_json(self) -> dict[str, Any]:
        """Returns the document that `deployer explain --json` prints."""
        return {
            "kind": self.kind,
            "name": self.name,
            "text": self.text,
            "advice": self.advice or None,
            "facts": dict(self.facts),
            "page": self.page,
        }


def explain(topic: str) -> Explanation:
    """Returns the explanation of the error, service or change of that name, which may be in upper or lower case.

    Raises NotFound for any other name, with the nearest topic.
    """
    known = topics()
    found = {each.name.lower(): each for several in known.values() for each in several}.get(topic.lower())
    if found is None:
        near = nearest(topic, [each.name for several in known.values() for each in several])
        remedy = f"did you mean {near}?" if near else "`deployer explain` lists all topics"
        raise NotFound(f"there is no topic {topic!r}", remedy=remedy)
    return found


@cache
def topics() -> Mapping[TopicKind, tuple[Explanation, ...]]:
    """Returns all explanations by the kind of their topics."""
    text = resources.files("deployer.app").joinpath(FILE).read_text(encoding="utf-8")
    read: Mapping[str, Mapping[str, Mapping[str, str]]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return {
        "error": tuple(
            Explanation(
                "error",
                name,
                each["means"],
                each["do"],
                {"exit code": str(each.get("exit", 1))},
                f"errors.md#{name.lower()}",
            )
            for name, each in read["errors"].items()
        ),
        "service": tuple(
            Explanation(
                "service", name, each["does"], each["use"], _beside(name), _SERVICE_PAGES.get(name, "services.md")
            )
            for name, each in read["services"].items()
        ),
        "change": tuple(
            Explanation(
                "change",
                name,
                _LINK.sub(r"\1", each["does"]),
                "",
                {"change": _LINK.sub(r"\1", each["change"]), "risk": each["risk"]},
                "changes.md",
            )
            for name, each in read["changes"].items()
        ),
    }


def _beside(service: str) -> Mapping[str, str]:
    others = next((others for kind, others in EXCLUDES.items() if kind == service), ())
    return {"never runs beside": ", ".join((service, *others))}


def errors_page() -> str:
    """Returns docs/errors.md: every kind of error, its exit code, what it means and what to do."""
    return "\n".join(
        [
            "# Errors",
            "",
            "<!-- Made by `make reference` from deployer/app/explanations.yaml. Do not edit. -->",
            "",
            "A command that fails prints `error: WHERE: WHAT; REMEDY` on stderr. With `--json` it prints a document",
            "whose `error.kind` is one of these names; they stay the same in later releases. `deployer explain KIND`",
            "prints the same in a terminal.",
            "",
            *(
                line
                for each in topics()["error"]
                for line in (
                    f"## {each.name}",
                    "",
                    f"Exit code {each.facts['exit code']}. {each.text}",
                    "",
                    f"**What to do:** {each.advice}",
                    "",
                )
            ),
        ]
    )
