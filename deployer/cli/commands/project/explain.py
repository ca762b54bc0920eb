"""`deployer explain`: explains errors, services and changes in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import AsJson

if TYPE_CHECKING:
    from deployer.app.operations.explain import Explanation


def explain(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="ERROR|SERVICE|CHANGE",
            help="Such as Conflict, COMPACT or AddColumn; all topics are listed by default.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Explain an error, a service or a change of a plan: what it means, and what to do."""
    from deployer.app.operations import explain as explanations
    from deployer.cli.console.output import print_data, print_json

    if topic is None:
        known = explanations.topics()
        if as_json:
            print_json({kind: [each.name for each in several] for kind, several in known.items()})
        else:
            for kind, several in known.items():
                print_data(f"{kind}s: {', '.join(each.name for each in several)}\n")
        return 0
    found = explanations.explain(topic)
    print_json(found.to_json()) if as_json else print_data(_text(found))
    return 0


def _text(found: Explanation) -> str:
    lines = [f"{found.name} ({found.kind})", *(f"  {name}: {value}" for name, value in found.facts.items())]
    lines += [f"  {text}" for text in (found.text, found.advice) if text]
    return "\n".join([*lines, f"  more: docs/{found.page}", ""])
