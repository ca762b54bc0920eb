"""The properties of a view's document that tables do not have: functions, freshness and services."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from deployer.errors import InvalidInput, Position
from deployer.platform.sql.one_expression import names_in
from deployer.platform.sql.select import without_comments
from deployer.specs.rules import Rule
from deployer.specs.sources.files import Document
from deployer.specs.types.view import FUNCTION_NAME, ViewFunction, staleness_of
from deployer.specs.yaml.nodes import Node

Report = Callable[[Position, Rule, str, str], None]
OF_VIEWS_ALONE = ("REFRESH",)  #: services that tables do not have


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """A view's document, its full name and its query; `sources` are the full names of the tables that the query reads.

    `plannable`: the query is one SELECT that reads tables by their full names.
    """

    document: Document
    full_name: str
    query: str
    sources: tuple[str, ...] = ()
    plannable: bool = False


def read_functions(view: DeclaredView, report: Report) -> dict[str, ViewFunction]:
    """Returns the functions that the query calls, by their names in it."""
    node = view.document.valid("functions")
    found: dict[str, ViewFunction] = {}
    called = names_in(without_comments(view.query)) if view.query else frozenset()
    for name, declared in node.value.items() if node is not None and isinstance(node.value, dict) else ():
        if not FUNCTION_NAME.fullmatch(name):
            what = f"`{name}` cannot be the name of a function in a query"
            report(
                declared.key_at, Rule.VIEW_FUNCTION, what, "use small letters, digits and _, and start with a letter"
            )
            continue
        if view.plannable and name not in called:
            what = f"the query of view `{view.full_name}` does not call the function `{name}`"
            report(declared.key_at, Rule.VIEW_FUNCTION, what, "remove it, or call it in the query")
        function = _function(name, declared, report)
        if function is not None:
            found[name] = function
    return found


def _function(name: str, node: Node, report: Report) -> ViewFunction | None:
    form: Mapping[str, Node] = node.value if isinstance(node.value, dict) else {}
    returns = form["returns"].plain() if "returns" in form else ""
    if not isinstance(returns, str):
        what = f"`returns` of function `{name}` is in the long form"
        report(form["returns"].at, Rule.VIEW_FUNCTION, what, "write the type as text, such as list<string>")
        return None
    return ViewFunction(str(form["function"].value), returns)


def read_staleness(node: Node | None, report: Report) -> int | None:
    """Returns how late the view may be, in milliseconds; None without a limit."""
    if node is None:
        return None
    try:
        found = staleness_of(str(node.value))
    except InvalidInput as error:
        report(node.at, Rule.VIEW_STALENESS, f"`max_staleness`: {error.what}", error.remedy)
        return None
    if found == 0:
        what = "`max_staleness` is zero, which no refresh can meet"
        report(node.at, Rule.VIEW_STALENESS, what, "write a time such as 1h")
        return None
    return found


def check_own_services(node: Node | None, kinds: Collection[str], report: Report) -> None:
    """Reports services that a view declares and cannot have."""
    own = node.value if node is not None and isinstance(node.value, dict) else {}
    for kind in kinds:
        if (declared := own.get(kind.lower())) is not None:
            what = f"{kind} is a service of tables: only a refresh writes the rows of a view"
            report(declared.key_at, Rule.VIEW_SERVICE, what, f"remove `{kind.lower()}`")


def without_services(node: Node | None, kinds: Collection[str]) -> Node | None:
    """Returns the services without those of these kinds."""
    if node is None or not isinstance(node.value, dict):
        return node
    left_out = {kind.lower() for kind in kinds}
    return node._replace(value={name: each for name, each in node.value.items() if name not in left_out})
