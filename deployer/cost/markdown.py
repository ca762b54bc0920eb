"""An estimate as Markdown, for a comment or a page."""

from __future__ import annotations

from deployer.cost import words
from deployer.cost.estimate import Estimate
from deployer.plan.render.escaping import markdown_code, markdown_text


def as_markdown(instance: str, estimate: Estimate) -> str:
    """A table with the total first; assumptions are folded."""
    lines = [f"### Cost of {markdown_code(instance)} a month: {markdown_text(words.total(estimate))}", ""]
    lines += [markdown_text(words.headline(instance, estimate)), ""]
    lines += [f"| {' | '.join(words.HEADS)} |", "|---|---|--:|--:|--:|"]
    for line in estimate.lines:
        resource, *cells = words.row(line)
        lines.append(f"| {' | '.join([markdown_code(resource), *map(markdown_text, cells)])} |")
    lines += ["", "<details><summary>Assumed, and not counted</summary>", ""]
    lines += [f"- {markdown_text(text)}" for text in words.assumed(estimate)]
    lines += [f"- not counted: {words.NOT_COUNTED}", "", "</details>"]
    return "\n".join(lines) + "\n"
