"""The check, before a plan is made, that the queries of its views can be maintained incrementally."""

from __future__ import annotations

from deployer.errors import DeployerError, InvalidInput, InvalidSpecs, NotFound, Position, Problem
from deployer.live.model import LiveLake, LiveTable
from deployer.specs.model import Lake, TableSpec
from deployer.specs.rules import Rule
from deployer.specs.types.view import view_to_stored


def require_maintainable(lake: Lake, live: LiveLake, root: str) -> None:
    """Raises InvalidSpecs with everything that cannot be maintained in the queries of new and changed views.

    A query is checked against the declared tables; of its functions, only the packages are read.
    """
    problems = []
    for view in lake.tables:
        now = live.of(view)
        if view.view is None or (isinstance(now, LiveTable) and now.spec.view == view.view):
            continue
        try:
            _parse(view, lake, root)
        except InvalidInput as error:
            at = view.sources.get("query") or view.sources.get("") or Position("specs")
            problems.append(Problem(at, f"view `{view.full_name}`: {error.what}", error.remedy, Rule.VIEW_QUERY))
        except DeployerError:  # the package of a function cannot be read; creating the view reports this
            continue
    if problems:
        raise InvalidSpecs(problems)


def _parse(view: TableSpec, lake: Lake, root: str) -> None:
    from deployer.platform.isolation.trusted_functions import NONE_TRUSTED  # these modules load Arrow and DataFusion
    from deployer.specs.types.arrow import arrow_schema
    from deployer.views.definition import ViewDefinition
    from deployer.views.query.model import SourceSchema
    from deployer.views.refresh.engine import queries_of

    declared = {each.full_name: each for each in lake.tables}

    def schema_of(name: str) -> SourceSchema:
        source = declared.get(name)
        if source is None:
            raise NotFound(f"there is no table {name}", where=view.address)
        stable = source.storage.stable_row_ids
        stable_row_ids = not source.row_keys if stable is None else stable
        return SourceSchema(name, arrow_schema(source.columns), source.row_keys, source.unique, stable_row_ids)

    assert view.view is not None  # noqa: S101 -- the caller checks this
    definition = ViewDefinition.of_json(view_to_stored(view.view), view.address)
    queries_of(root, NONE_TRUSTED).parse(definition, schema_of, view.address)
