"""A lake with hostile texts, served on a port that the system chooses, and a browser's requests to it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

import pytest

from deployer.app.workspace import open_workspace
from deployer.state import open_reader
from deployer.ui.datasets import DatasetsView
from deployer.ui.lake import LakeView
from deployer.ui.pages import Site
from deployer.ui.server import HOST, bound, server
from tests.catalog.datasets.recordings import scalars, write_recording
from tests.projects import INSTANCE, applied_project, run, table

HOSTILE = "<script>alert(1)</script> & \"quotes\" 'single' {{ 7 * 7 }} </title></style> ]]>"
QUOTED = HOSTILE.replace("'", "''")
SPECS = {
    "demo.yaml": INSTANCE,
    "flights.yaml": table(
        "flights", "delay: int32", "remark: string", more="services:\n  compact: {trigger: {commits: 100}}\n"
    ),
    "drives.yaml": f"kind: Dataset\nname: drives\ndescription: '{QUOTED}'\nretention: 30d\n",
    "planes.yaml": table("planes", more=f"description: '{QUOTED}'\ntags: {{note: '{QUOTED}'}}\n"),
}
OF_A_CLIENT = "made/by & a <client>?"  #: a dataset that no spec declares
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Answer:
    """What the server sent."""

    status: int
    headers: Mapping[str, str]
    text: str


@dataclass
class Page(HTMLParser):
    """A page: its visible text, scripts and the values of its forms' tokens. Refuses what does not nest or runs
    inline."""

    page: str
    text: str = ""
    tokens: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.feed(self.page)
        self.close()
        assert not self._open
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert not {name for name in values if name.startswith("on") or name == "style"}
        assert tag not in ("img", "iframe", "object", "embed", "base", "style")
        if tag == "script":
            assert values == {"src": "/static/htmx.min.js", "defer": None}
        if values.get("name") == "token":
            self.tokens.append(values["value"] or "")
        if tag == "form" and values.get("method") == "post":
            self.actions.append(values["action"] or "")
        if tag not in ("meta", "link", "input"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "line"

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.text += " "  # cells and terms touch each other

    def handle_data(self, data: str) -> None:
        self.text += data


@dataclass(frozen=True)
class Browser:
    """Sends requests to the server of `view`, which shows the lake of the project in `folder`."""

    port: int
    view: LakeView
    view_of_datasets: DatasetsView
    folder: Path

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: str = "",
        host: str | None = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Asks for a path; `host` is the Host header (empty: the server's own; None: there is none)."""
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=60)) as connection:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            if host is not None:
                connection.putheader("Host", host or f"{HOST}:{self.port}")
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body.encode() if body else None)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read().decode())

    def page(self, path: str, status: int = 200) -> Page:
        """Returns a page, which must have this status."""
        answer = self.ask(path)
        assert answer.status == status, answer.text
        return Page(answer.text)

    def post(self, path: str, **fields: str) -> Answer:
        """Sends a form."""
        return self.ask(path, "POST", urlencode(fields), headers=FORM)


@contextmanager
def served(folder: Path, *, allow_runs: bool = False) -> Iterator[Browser]:
    """Serves the lake of a project until the block ends."""
    workspace = open_workspace(folder, "dev", None)
    root = workspace.root(workspace.lake())
    with closing(open_reader(root)) as store, bound(0) as (listening, port):
        view = LakeView(store, root)
        site = Site(view, workspace, "demo", allow_runs)
        serving = server(site, port)
        thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield Browser(port, view, site.datasets, folder)
        finally:
            serving.should_exit = True
            thread.join(300)
            assert not thread.is_alive()


def load() -> None:
    for number in range(2):
        file = Path(f"{number}.csv")
        quoted = HOSTILE.replace('"', '""')
        rows = "".join(f'{each + 100 * number},1,"{quoted}"\n' for each in range(30))
        file.write_text(f"id,delay,remark\n{rows}", encoding="utf-8")
        run("ingest", "air.flights", str(file), "--engine", "driver")
    for number in range(3):
        recording = write_recording(Path(f"recordings/{number}.rrd"), f"drive {number}", [scalars("/a", [number])])
        run("catalog", "register", "drives", str(recording))
    hostile = write_recording(Path("recordings/hostile.rrd"), HOSTILE, [scalars("/a", [1])])
    run("catalog", "register", "drives", str(hostile), "--layer", "second")
    run("catalog", "register", "--create", OF_A_CLIENT, "recordings/0.rrd")
    run("catalog", "maintain", "drives")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """air.flights has two loads of 30 rows with hostile values; air.planes has hostile texts and no rows. The dataset
    drives has four segments, and that of a client has one of their files."""
    folder = applied_project(tmp_path / "project", SPECS, load)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def browser(project: Path) -> Iterator[Browser]:
    """The lake served read-only."""
    with served(project) as found:
        yield found
