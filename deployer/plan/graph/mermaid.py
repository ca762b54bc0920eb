"""The resource graph in Mermaid's language, which GitHub and many editors draw."""

from __future__ import annotations

from deployer.plan.graph.build import Graph


def graph_as_mermaid(graph: Graph) -> str:
    """A flowchart from what is depended on to what depends on it. Nodes are numbered, so names are only labels."""
    ids = {address: f"n{number}" for number, address in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for address, name in ids.items():
        lines.append(f'  {name}["{_label(address)}"]')
    for address, node in graph.nodes.items():
        lines += [f"  {ids[needed]} --> {ids[address]}" for needed in node.depends_on if needed in ids]
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """A label that means nothing to Mermaid nor to HTML: all but letters, digits and a few signs as entity numbers."""
    return "".join(
        character if character.isalnum() or character in " /_-." else f"#{ord(character)};" for character in text
    )
