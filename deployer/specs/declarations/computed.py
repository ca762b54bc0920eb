"""Declarations of computed columns: nodes whose shape was checked to definitions. No function is imported."""

from __future__ import annotations

from deployer.specs.types.computed import Computed, ComputedBySql, ComputedByUdf
from deployer.specs.yaml.nodes import Node


def computed_of_node(node: Node) -> Computed | None:
    """Returns the written definition; the inputs of SQL, and an omitted version, are added later.

    None for a node with neither `sql` nor `udf`, which `check_computed` reports.
    """
    form = node.value
    if not isinstance(form, dict):
        return None
    on_load = "on_load" in form and form["on_load"].value is True
    if "sql" in form:
        return ComputedBySql(str(form["sql"].value).strip(), on_load=on_load)
    if "udf" not in form:
        return None
    inputs = form["inputs"].value if "inputs" in form else []
    names = tuple(str(each.value) for each in inputs) if isinstance(inputs, list) else ()
    texts = {name: str(form[name].value) for name in ("function", "version", "output") if name in form}
    return ComputedByUdf(
        str(form["udf"].value),
        texts.get("function", ""),
        names,
        texts.get("version", ""),
        texts.get("output", ""),
        on_load,
    )
