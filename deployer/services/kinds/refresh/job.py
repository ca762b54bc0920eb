"""A run of the service REFRESH."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.errors import DeployerError
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.text.formatting import count
from deployer.services.definition import Work, options_of
from deployer.services.kinds.refresh.options import RefreshOptions
from deployer.views.refresh.engine import queries_of
from deployer.views.refresh.plan import RefreshPlan
from deployer.views.refresh.refresh import ViewJob, do_refresh, plan_refresh, require_view_online
from deployer.views.refresh.results import RefreshJobResult, RefreshRequest

if TYPE_CHECKING:
    from deployer.tables.open_table import ReadTable


def refresh_view(work: Work[RefreshOptions]) -> RefreshJobResult:
    """Refreshes the view. Raises the same errors as `refresh`; an error leaves the view unchanged."""
    require_view_online(work.table)
    options = work.options
    request = RefreshRequest(full=options.full, max_rows_per_fragment=options.max_rows_per_fragment)
    queries = queries_of(work.table.root, TrustedFunctions.allowed())
    return do_refresh(ViewJob(work.table, request, work.run_id, queries), work.run_id, work.on_progress)


def forecast(table: ReadTable) -> str:
    """Returns a description of what the next run would do. Opens manifests and no data file."""
    options = RefreshOptions.of(options_of(table.state, "REFRESH"))
    queries = queries_of(table.root, TrustedFunctions.allowed())
    try:
        return in_words(plan_refresh(queries, table, RefreshRequest(full=options.full)))
    except DeployerError as error:
        return f"fails: {error.what}"


def in_words(plan: RefreshPlan) -> str:
    """Returns a description of a plan, as one phrase."""
    if plan.mode == "none":
        return f"nothing: {plan.reason}"
    of = f"{count(plan.rows, 'row')} in {count(plan.fragments, 'file')}"
    if plan.mode == "full":
        return f"computes all rows again from {of}, since {plan.reason}"
    return f"takes over {count(plan.commits, 'commit')} that touched {of}"
