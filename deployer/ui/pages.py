"""The pages and their paths."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from deployer import app as operations
from deployer.app.report_page.page import moment, table_view
from deployer.app.report_page.services import ServicesView
from deployer.app.workspace import Workspace
from deployer.cost.rendering import HEADS, assumed, row, total
from deployer.cost.rendering import headline as cost_headline
from deployer.errors import Conflict, DeployerError, InvalidInput, NotFound, Refused
from deployer.plan.assess.pending_backfills import describe_pending
from deployer.plan.render.changes import describe
from deployer.plan.render.html import page_environment, plan_values
from deployer.platform.system.clock import utc
from deployer.platform.text import masking
from deployer.state.model.services import Run
from deployer.ui.comparison import compare
from deployer.ui.datasets import PAGE as DATASETS
from deployer.ui.datasets import DatasetsView
from deployer.ui.lake import PAGE, LakeView
from deployer.ui.protection import LONGEST_FORM, FormTokens
from deployer.ui.results import Results
from deployer.ui.rows import RowPreview, preview_rows
from deployer.ui.runs import change_run, describe_run, share_of_run

STATIC = {
    "page.css": "text/css; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
}
LISTED_VERSIONS = 200  #: that a table's page lists and compares
PREVIEWED, PREVIEWED_ROWS = 5, 3  #: tables that a search shows rows of, and how many of each
SHOWN_RUNS = 20  #: of a table
_STYLES = ("page.css", "lake.css", "changes.css", "ui.css")


@dataclass(frozen=True)
class Site:
    """The content of the pages: the lake, the place of its declaration, and whether runs may be queued and
    cancelled."""

    lake: LakeView
    workspace: Workspace
    instance: str
    allow_runs: bool = False

    @cached_property
    def datasets(self) -> DatasetsView:
        return DatasetsView(self.lake.store, self.lake.root)


def make_app(site: Site) -> Starlette:
    """Returns the application of all pages, without the checks of requests (`deployer.ui.protection`)."""
    pages = _Pages(site)
    routes = [
        Route("/", pages.tables),
        Route("/table/{name}", pages.table),
        Route("/table/{name}/compare", pages.comparison),
        Route("/table/{name}/rows", pages.rows),
        Route("/table/{name}/preview", pages.preview),
        Route("/table/{name}/runs", pages.runs),
        Route("/datasets", pages.datasets),
        Route("/dataset/{name:path}", pages.dataset),
        Route("/dataset-runs/{name:path}", pages.dataset_runs),
        Route("/health", pages.health),
        Route("/health/part", pages.health_part),
        Route("/search", pages.search),
        *(Route(f"/{kind}", pages.result(kind), methods=["GET", "POST"]) for kind in ("plan", "drift", "cost")),
        *(Route(f"/{kind}/part", pages.result_part(kind)) for kind in ("plan", "drift", "cost")),
        Route("/static/{name}", pages.static),
    ]
    if site.allow_runs:
        routes.append(Route("/table/{name}/run", pages.run, methods=["POST"]))
    handlers: dict[Any, Any] = {DeployerError: pages.failed, HTTPException: pages.refused, Exception: pages.broken}
    return Starlette(routes=routes, exception_handlers=handlers, max_body_size=LONGEST_FORM)


class _Pages:
    def __init__(self, site: Site) -> None:
        self._site, self._tokens = site, FormTokens()
        self._environment = page_environment("deployer.ui")
        place = site.workspace
        where = (place.dir, place.stack, place.specs)
        self._results = Results(
            {
                "plan": lambda: operations.plan(*where),
                "drift": lambda: operations.drift(*where),
                "cost": lambda: operations.cost(*where),
            }
        )

    async def tables(self, request: Request) -> Response:
        words, first = _asked(request)
        found = await run_in_threadpool(self._site.lake.tables, words, first)
        return self._page("tables.html.j2", request, found=found, words=words, page=PAGE)

    async def table(self, request: Request) -> Response:
        now = dt.datetime.now(dt.UTC)
        opened = await run_in_threadpool(self._site.lake.table, request.path_params["name"], now)
        view = table_view(opened.report, opened.services)
        view["listed"] = opened.report.versions[:LISTED_VERSIONS]
        return self._page(
            "table.html.j2",
            request,
            view=view,
            table=opened.report,
            about=opened.report.description,
            summary=opened.report.description.summary,
            **_runs(opened.services, opened.report.description.summary.name),
            older=len(opened.report.versions) - len(view["listed"]),
            name=opened.report.description.summary.name,
        )

    async def comparison(self, request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params

        def compared() -> Any:
            opened = self._site.lake.table(name, dt.datetime.now(dt.UTC))
            versions = opened.report.versions
            view = table_view(opened.report, None)
            labels = [view["label"](version) for version in versions]
            return view, compare(opened.table, versions, labels, asked.get("one", ""), asked.get("two", ""))

        view, found = await run_in_threadpool(compared)
        return self._page("comparison.html.j2", request, name=name, found=found, what=view["what"], label=view["label"])

    async def rows(self, request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params
        where, words = asked.get("where", "").strip(), asked.get("words", "").strip()
        opened = await run_in_threadpool(self._site.lake.open, name)
        found, problem, status = None, "", 200
        try:
            found = await run_in_threadpool(preview_rows, opened, where, words)
        except (InvalidInput, Refused) as error:
            problem, status = str(error), 400
        values = {"found": found, "problem": problem, "where": where, "words": words, "name": opened.entry.full_name}
        return self._page("rows.html.j2", request, status, **values)

    async def runs(self, request: Request) -> Response:
        """Answers with the newest runs and their progress, which a table's page requests regularly."""
        name = request.path_params["name"]
        services = await run_in_threadpool(self._site.lake.services, name, dt.datetime.now(dt.UTC))
        return self._page("runs_part.html.j2", request, **_runs(services, name))

    async def preview(self, request: Request) -> Response:
        """Answers with the first rows of a table, for the page of a search."""
        found, problem = await run_in_threadpool(self._first_rows, request.path_params["name"])
        return self._page("preview_part.html.j2", request, found=found, problem=problem)

    def _first_rows(self, name: str) -> tuple[RowPreview | None, str]:
        try:
            return preview_rows(self._site.lake.open(name), "", "", PREVIEWED_ROWS), ""
        except DeployerError as error:
            return None, str(error)

    async def datasets(self, request: Request) -> Response:
        words, first = _asked(request)
        found = await run_in_threadpool(self._site.datasets.datasets, words, first)
        return self._page("datasets.html.j2", request, found=found, words=words, page=DATASETS, progress=describe_run)

    async def dataset(self, request: Request) -> Response:
        words, first = _asked(request)
        found = await run_in_threadpool(self._site.datasets.dataset, request.path_params["name"], words, first)
        values: dict[str, Any] = {"found": found, "words": words, "page": DATASETS}
        return self._page("dataset.html.j2", request, **values, **_shown(found.runs, _runs_of_dataset(found.name)))

    async def dataset_runs(self, request: Request) -> Response:
        """Answers with the newest runs of a dataset's maintenance, which its page requests regularly."""
        name = request.path_params["name"]
        runs = await run_in_threadpool(self._site.datasets.runs, name)
        return self._page("runs_part.html.j2", request, **_shown(runs, _runs_of_dataset(name)))

    async def search(self, request: Request) -> Response:
        words = request.query_params.get("words", "").strip()
        found, number = await run_in_threadpool(self._site.lake.search, words)
        first = await run_in_threadpool(self._first_rows, found[0].name) if found else (None, "")
        values: dict[str, Any] = {"found": found, "number": number, "first": first, "previewed": PREVIEWED}
        return self._page("search.html.j2", request, words=words, **values)

    async def health(self, request: Request) -> Response:
        return await self._health("health.html.j2", request)

    async def health_part(self, request: Request) -> Response:
        return await self._health("health_part.html.j2", request)

    async def _health(self, template: str, request: Request) -> Response:
        look = await run_in_threadpool(self._site.lake.health, dt.datetime.now(dt.UTC))
        seen = sorted(look.tables.values(), key=lambda each: each.entry.full_name)
        problems: list[tuple[str, str, str, str]] = []
        active: list[tuple[str, str, str, str]] = []
        for table in seen:
            name = table.entry.full_name
            if table.trouble:
                problems.append((name, "", "unreadable", table.trouble))
            if table.freshness is not None and (why := table.freshness.why_late(look.at) or table.freshness.unknown):
                problems.append((name, "", "unknown" if table.freshness.unknown else "late", why))
            for each in table.service_statuses:
                if not each.is_well:
                    problems.append((name, each.service, each.label.lower(), self._site.lake.reason(table, each)))
                elif each.last is not None and each.last.is_open:
                    progress = describe_run(each.last) or each.last.cause
                    active.append((name, each.service, each.label.lower(), progress))
        return self._page(
            template,
            request,
            at=utc(look.at),
            problems=problems,
            active=active,
            tables=len(seen),
            services=sum(len(table.service_statuses) for table in seen),
        )

    def result(self, kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def page(request: Request) -> Response:
            if request.method == "POST":
                await self._tokens.form(request)
                self._results.start(kind)
                return RedirectResponse(f"/{kind}", 303)
            return self._page("result.html.j2", request, kind=kind, **self._of_result(kind))

        return page

    def result_part(self, kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def part(request: Request) -> Response:
            return self._page("result_part.html.j2", request, kind=kind, **self._of_result(kind))

        return part

    def _of_result(self, kind: str) -> dict[str, Any]:
        result = self._results.newest(kind)
        values: dict[str, Any] = {"result": result, "describe_change": describe}
        match result.value:
            case operations.PlanResult(plan=plan):
                values |= plan_values(plan)
            case operations.CostResult(instance=instance, estimate=estimate):
                values |= {
                    "heads": HEADS,
                    "lines": [row(line) for line in estimate.lines],
                    "total": total(estimate),
                    "assumed": assumed(estimate),
                    "cost_headline": cost_headline(instance, estimate),
                }
        return values

    async def run(self, request: Request) -> Response:
        name, fields = request.path_params["name"], await self._tokens.form(request)
        service, action = fields.get("service", ""), fields.get("action", "")
        root, owner = self._site.lake.root, self._site.workspace.owner
        await run_in_threadpool(change_run, root, owner, name, service, action)
        return RedirectResponse(f"/table/{quote(name, safe='')}#services", 303)

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404)
        return Response(_static(name), media_type=STATIC[name])

    async def failed(self, request: Request, error: Exception) -> Response:
        statuses = {NotFound: 404, InvalidInput: 400, Refused: 403, Conflict: 409}
        status = next((number for kind, number in statuses.items() if isinstance(error, kind)), 500)
        return self._page("error.html.j2", request, status, title="It cannot be shown", message=str(error))

    async def refused(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        texts = {
            404: "This page does not exist.",
            405: "This server is read-only here: the page does not accept this request.",
            413: "The form is too long.",
        }
        message = texts.get(status, "The request cannot be answered.")
        return self._page("error.html.j2", request, status, title="It cannot be shown", message=message)

    async def broken(self, request: Request, error: Exception) -> Response:
        message = f"{type(error).__name__}: {error}"
        return self._page("error.html.j2", request, 500, title="It cannot be shown", message=message)

    def _page(self, template: str, request: Request, status: int = 200, **values: Any) -> HTMLResponse:
        path = request.url.path
        values = {
            "instance": self._site.instance,
            "root": self._site.lake.root,
            "stack": self._site.workspace.stack,
            "allow_runs": self._site.allow_runs,
            "token": self._tokens.value,
            "path": path,
            "moment": moment,
            "utc": utc,
            "describe_pending": describe_pending,
            **values,
        }
        html = self._environment.get_template(template).render(**values)
        return HTMLResponse(masking.masked(html), status)


def _runs(services: ServicesView, name: str) -> dict[str, Any]:
    return _shown(services.report.runs, f"/table/{quote(name, safe='')}/runs")


def _runs_of_dataset(name: str) -> str:
    return f"/dataset-runs/{quote(name, safe='')}"


def _shown(runs: Sequence[Run], address: str) -> dict[str, Any]:
    """Returns the values for the newest runs, including the address to request them again."""
    shown = runs[:SHOWN_RUNS]
    is_working = any(run.is_open for run in shown)
    return {
        "runs": shown,
        "runs_address": address,
        "is_working": is_working,
        "progress": describe_run,
        "share": share_of_run,
    }


def _asked(request: Request) -> tuple[str, int]:
    """Returns the words to find in names, and the number of the first line of a page."""
    return request.query_params.get("words", ""), _number(request.query_params.get("from", "0"))


def _static(name: str) -> bytes:
    if name != "page.css":
        return (files("deployer.ui") / "static" / name).read_bytes()
    folders = (files("deployer.plan") / "templates", files("deployer.ui") / "static")
    found = ((folder / style) for style in _STYLES for folder in folders)
    return b"\n".join(file.read_bytes() for file in found if file.is_file())


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 10 else 0
