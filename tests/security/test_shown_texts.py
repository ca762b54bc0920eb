"""Text of others in what commands print: shown, never sent as it is, and never a line of ours or a command of a log."""

from __future__ import annotations

import io
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.text import Text

from deployer.cli.commands.agent.log import AgentLog
from deployer.cli.commands.data.query import RowFormat, write_rows
from deployer.cli.console import output
from deployer.cli.console.progress_display import Meter
from deployer.cli.console.step_view import StepView
from deployer.cli.console.streams import ShownStream, shown_streams
from deployer.cli.main import run
from deployer.cli.remote.run import _watcher
from deployer.compute.jobs.cluster import RunState, RunStatus
from deployer.engine import Diagnostic, Event, StepFailed, StepFinished, StepProgress, StepStarted
from deployer.errors import DeployerError, InvalidInput, Position
from deployer.live.model import LiveLake
from deployer.plan import Foreign, make_plan
from deployer.plan.assess.cost_delta import MonthlyCost
from deployer.plan.render.escaping import markdown_code, markdown_text
from deployer.plan.render.terminal import plan_as_tree
from deployer.plan.verdict import Enforcement, Verdict, Violation
from deployer.platform.text.visible import visible, visible_json, visible_text
from deployer.specs.model import TableSpec
from deployer.specs.types.types import Column, Scalar
from deployer.state import open_store
from deployer.state.log.updates import SetTableProperties
from deployer.tables.read.table import Rows
from tests.cli.conftest import Deployer
from tests.plan.lakes import graph
from tests.projects import INSTANCE, REPOSITORY, make_project, table
from tests.security.test_compared_repositories import commit, git

FORGED = "forged"
#: What acts on terminals (ESC, C1, DEL, CR), turns or hides text, ends lines, and begins commands of CI systems.
HOSTILE = (
    "a\x1b[2J\x1b]0;t\x07\x9b31m\x7f\u202e\u2066\u200b\u200d\ufeff\u00ad\U000e0041\u3164\u2028\x85\x0b\r\n"
    f"::error::{FORGED}\n  ##[error]{FORGED}\n##vso[task.{FORGED}]\n--- {FORGED}\nb"
)


def quoted(text: str) -> str:
    """A text as a scalar of YAML."""
    return '"' + "".join(each if each.isalnum() else f"\\U{ord(each):08x}" for each in text) + '"'


SPECS = f"""\
kind: Table
database: air
name: flights
description: {quoted(HOSTILE)}
tags: {{{quoted(HOSTILE)}: {quoted(HOSTILE)}}}
columns:
  - {{name: id, type: int64, nullable: false}}
  - {{name: text, type: string, description: {quoted(HOSTILE)}}}
  - {{name: late, type: string, default: {quoted(f"'{HOSTILE}'")}}}
row_keys: [id]
services:
  compact: {{trigger: {{commits: 1}}}}
"""


def is_hidden(character: str) -> bool:
    ignorable = character in "\u034f\u115f\u1160\u17b4\u17b5\u180b\u3164\uffa0" or "\ufe00" <= character <= "\ufe0e"
    return ignorable or (
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character != "\n"
    )


def check_shown(text: str, *, folded: bool = False) -> None:
    """Nothing of `text` acts on a terminal, and no line is one that the hostile texts ask for.

    `folded`: a cell of a table may have any word at the beginning of a line, behind blanks or a margin.
    """
    assert not {f"U+{ord(each):04X}" for each in text if is_hidden(each)}
    for line in text.split("\n"):
        assert not line.strip().startswith("::"), line
        assert not (line.strip() if not folded else line).startswith(FORGED), line
        assert not re.search(r"##\w*\[", line), line
        assert not re.match(r"(---|\+\+\+|~~~|\^\^\^) ", line), line


def make_lake(folder: Path) -> Path:
    made = make_project(folder, {"demo.yaml": INSTANCE, "planes.yaml": table("planes")})
    (made / "specs" / "flights.yaml").write_text(SPECS, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lake with hostile text wherever it has text: specs, state, authors and rows."""
    folder = make_lake(tmp_path_factory.mktemp("hostile") / "project")
    rows = folder / "rows.parquet"
    pq.write_table(pa.table({"id": [1, 2], "text": [HOSTILE, f"::error::{FORGED}"]}), rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("LOGNAME", HOSTILE)
        assert run(["up", "--yes"]) == 0
        assert run(["ingest", "air.flights", str(rows), "--job-id", "job-1"]) == 0
        assert run(["savepoint", "create", "before"]) == 0
        with closing(open_store(str(folder / "lakes" / "demo"))) as store:
            entry = store.instance().by_name("air.planes")
            assert entry is not None
            change = SetTableProperties({"tags": {HOSTILE: HOSTILE}, "description": HOSTILE})
            store.commit(entry.table_id, [change], author=HOSTILE)
        git(folder, "init", "-q", "-b", "main")
        (folder / ".gitignore").write_text("lakes/\n.pulumi/\n")
        commit(folder)
        yield folder


READS = [
    "validate",
    "preview",
    "preview --against main",
    "preview --against main --policy-only",
    "drift",
    "tables",
    "describe air.flights",
    "describe air.planes",
    "history air.flights",
    "history air.planes",
    "query air.flights",
    "query nowhere",
    "query air.flights --columns HOSTILE",
    "query air.flights --where HOSTILE",
    "query air.flights --keys HOSTILE",
    "query air.flights --range HOSTILE",
    "query air.flights --at HOSTILE",
    "query HOSTILE",
    "sql SELECT",
    "sql HOSTILE",
    "state log",
    "state log air.flights",
    "state log air.planes",
    "state show",
    "state show air.flights",
    "state show air.planes",
    "state verify",
    "table partitions air.flights",
    "table files air.flights",
    "table gc air.flights --dry-run",
    "table split-points infer air.flights",
    "table delete air.flights",
    "table delete HOSTILE --force",
    "service list",
    "service describe air.flights compact",
    "service describe air.flights HOSTILE",
    "service check",
    "service run --all --dry-run",
    "service runs air.flights",
    "savepoint list",
    "savepoint create HOSTILE",
    "restore before --dry-run",
    "restore HOSTILE",
    "graph",
    "graph --format svg",
    "cost",
    "doctor",
    "render",
    "schema infer rows.parquet",
    "schema infer HOSTILE",
    "ingest air.flights HOSTILE",
    "ingest air.flights strange.csv",
    "import HOSTILE",
    "follow HOSTILE",
    "agent --once --watch HOSTILE",
    "stack export HOSTILE/x",
    "up --stack HOSTILE",
    "preview --project HOSTILE",
    "preview --specs HOSTILE",
    "preview --against HOSTILE",
    "preview --format HOSTILE",
    "HOSTILE",
    "--HOSTILE",
    "query --HOSTILE x",
    "destroy",
    "package --output HOSTILE/\0",
]
AS_JSON = [
    "validate",
    "preview",
    "preview --against main",
    "drift",
    "tables",
    "describe air.flights",
    "describe air.planes",
    "history air.planes",
    "query air.flights",
    "query HOSTILE",
    "state log air.planes",
    "state show air.planes",
    "service list",
    "savepoint list",
    "render",
    "up --stack HOSTILE",
]


def arguments(command: str) -> list[str]:
    words = [word.replace("HOSTILE", HOSTILE) for word in command.split(" ")]
    if words[:2] == ["sql", "SELECT"]:
        return ["sql", f'SELECT text AS "{HOSTILE}" FROM flights']  # noqa: S608
    return words


@pytest.fixture
def here(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(lake)
    monkeypatch.setenv("LOGNAME", HOSTILE)
    return lake


@pytest.mark.parametrize("command", READS)
def test_what_commands_print_is_shown(command: str, here: Path, deployer: Deployer) -> None:
    """F9, F10: terminals and logs were sent what specs, state, rows and arguments hold."""
    (here / "strange.csv").write_text(f'id,"{HOSTILE}"\n1,x\n', encoding="utf-8")
    ran = deployer(*arguments(command))
    check_shown(ran.err)
    check_shown(ran.out)


@pytest.mark.parametrize("command", AS_JSON)
def test_json_is_shown_and_equal(command: str, here: Path, deployer: Deployer) -> None:
    """F9: JSON has escapes of its own, so that values stay what they are."""
    ran = deployer(*arguments(command), "--json")
    check_shown(ran.out)
    check_shown(ran.err)
    document = json.loads(ran.out)
    if command in ("describe air.flights", "query air.flights", "render", "state show air.planes"):
        assert HOSTILE in set(texts(document))


def texts(document: object) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from texts(value)
    elif isinstance(document, list):
        for value in document:
            yield from texts(value)


@pytest.mark.parametrize("width", ["20", "47", "80"])
@pytest.mark.parametrize("command", ["preview", "describe air.flights", "query air.flights", "state log", "sql SELECT"])
def test_folded_lines_begin_no_command(
    command: str,
    width: str,
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F10: a width that folds lines puts any word at the beginning of one."""
    monkeypatch.setenv("COLUMNS", width)
    check_shown(deployer(*arguments(command)).out, folded=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def to_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Makes stdout and stderr one terminal of 80 columns."""
    made = Terminal()
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setattr(sys, "stderr", made)
    for name, value in {"COLUMNS": "80", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "CI", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return made


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("command", [each for each in READS if "\0" not in each])
def test_a_terminal_gets_colours_and_nothing_else(command: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F9: descriptions, tags, rows and file names moved the cursor, set titles and made links."""
    terminal = to_terminal(monkeypatch)
    run(arguments(command))
    printed = re.sub(r"\x1b\[(\?25[lh]|2K|1A)|\r", "", terminal.getvalue())
    check_shown(without_colours(printed), folded=True)


def test_what_is_confirmed_is_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F9: a description of one table wiped the deletion of another from the screen."""
    terminal = to_terminal(monkeypatch)
    wipes = "\x1b[6A\x1b[J\rdemo\n└── ~ table/air.zz\n    └── safe     set description"
    filler = " ".join(["word"] * 12) + " └── ~ table/air.zz safe " + "└── destroys nothing " * 9
    for text in (wipes, filler):
        specs = {"demo.yaml": INSTANCE, "planes.yaml": table("planes"), "zz.yaml": table("zz")}
        project = make_project(tmp_path / f"project{len(text)}", specs)
        git(project, "init", "-q", "-b", "main")
        commit(project)
        (project / "specs" / "planes.yaml").unlink()
        more = f"tags: {{about: {quoted(text)}}}\ndescription: {quoted(text)}\n"
        (project / "specs" / "zz.yaml").write_text(table("zz", more=more), encoding="utf-8")
        monkeypatch.chdir(project)
        terminal.truncate(0)
        run(["preview", "--against", "main"])
        lines = without_colours(terminal.getvalue()).splitlines()
        branches = [line for line in lines if re.match(r"[│ ]{0,4}[├└]── ", line)]
        assert sum("table/" in line for line in branches if re.match("[├└]── ", line)) == 2, lines
        assert [line for line in branches if "destroys delete table" in line], lines
        own = re.compile(r"[│ ]{0,8}(safe|destroys|rewrites|[├└]──)")
        assert not [line for line in lines if own.match(line) and line not in branches], lines


@pytest.mark.parametrize("width", [40, 61, 80, 97, 113])
def test_no_width_puts_words_of_others_where_ours_begin(width: int) -> None:
    """F9: what does not fit is folded under the words that it belongs to."""
    words = ["Plan:", "Policy:", "Cost:", "destroys", "safe", "│", "├── -", "└── ~ table/air.zz", "demo: nothing to do"]
    filler = " ".join(itertools.islice(itertools.cycle(words), 200))
    violation = Violation("rule", Enforcement.MANDATORY, "table/air.t", filler, filler, Position(filler), "")
    verdict = Verdict((), (violation, replace(violation, approved=filler)), (filler,), ref=filler)
    cost = MonthlyCost(0.0, 1.0, filler, filler, filler, (filler,))
    spec = TableSpec("air", "t", (Column("id", Scalar("int64"), default=filler),), description=filler)
    plan = make_plan("demo", graph(spec), LiveLake(None), owner="demo/dev", foreign=[Foreign(filler, filler, filler)])
    plan = replace(plan, verdict=verdict, cost=cost)

    def own(columns: int) -> list[str]:
        out = io.StringIO()
        output.ShownConsole(file=out, width=columns, highlight=False, markup=False).print(plan_as_tree(plan))
        first = re.compile(r"(?:[│ ]   ){0,2}(?:[├└]── )?[^\s│]\S*")
        return [found[0] for line in out.getvalue().splitlines() if (found := first.match(line))]

    assert own(width) == own(1_000_000)


def rows(*texts: str) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"text": list(texts), "id": list(range(len(texts)))})


def written(format: RowFormat, output: Path | None, *texts: str) -> None:
    schema = pa.schema({"text": pa.string(), "id": pa.int64()})
    write_rows(Rows(schema, rows(*texts), 1, 1), format, output, as_json=False)


EXACT = f'text,id\n"{HOSTILE}",0\n'


def test_data_are_exact_in_a_file_and_for_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "BUILDKITE"):
        monkeypatch.delenv(name, raising=False)
    written(RowFormat.CSV, tmp_path / "rows.csv", HOSTILE)
    assert (tmp_path / "rows.csv").read_bytes().decode() == EXACT
    stream = io.StringIO(newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    with shown_streams():
        written(RowFormat.CSV, None, HOSTILE)
    assert stream.getvalue() == EXACT


def test_data_are_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """F9: rows are a line each there."""
    terminal = to_terminal(monkeypatch)
    written(RowFormat.CSV, None, HOSTILE, "plain")
    check_shown(terminal.getvalue())
    assert len(terminal.getvalue().splitlines()) == 3


@pytest.mark.parametrize("where", ["file", "pipe", "terminal"])
def test_json_lines_are_equal_everywhere(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream: io.StringIO = to_terminal(monkeypatch)
    if where == "pipe":
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stdout", stream)
    written(RowFormat.JSON, tmp_path / "rows.json" if where == "file" else None, HOSTILE)
    text = (tmp_path / "rows.json").read_text(encoding="utf-8") if where == "file" else stream.getvalue()
    assert json.loads(text) == {"text": HOSTILE, "id": 0}
    if where != "file":
        check_shown(text)


@pytest.mark.parametrize("variable", ["CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", "BUILDKITE"])
@pytest.mark.parametrize("text", ["::error::x", "a\n  ::add-mask::x", "a ##[error]x", "##vso[x]", "##teamcity[x]"])
def test_exact_data_do_not_command_a_log(
    text: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F10: what cannot be both exact and harmless is refused where stdout may be a log, and is written to a file."""
    monkeypatch.setenv(variable, "true")
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(InvalidInput, match="is a command to CI systems"):
        written(RowFormat.CSV, None, "before", text)
    check_shown(stream.getvalue())
    with (tmp_path / "redirected.csv").open("w", newline="") as file:
        monkeypatch.setattr(sys, "stdout", file)
        written(RowFormat.CSV, None, text)
    assert text in (tmp_path / "redirected.csv").read_text()
    monkeypatch.setattr(sys, "stdout", stream)
    written(RowFormat.CSV, None, "a::b ::c # #[d]")


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A branch that adds hostile text to a table, and a rule of its base that repeats it."""
    folder = make_project(
        tmp_path_factory.mktemp("reviewed") / "project", {"demo.yaml": INSTANCE, "t.yaml": table("t")}
    )
    (folder / "policies").mkdir()
    rule = "SELECT address, description AS message FROM resources WHERE description <> ''"
    (folder / "policies" / "repeat.sql").write_text(f"-- name: repeat\n{rule}\n", encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    commit(folder)
    more = f"description: {quoted(HOSTILE)}\ntags: {{{quoted(HOSTILE)}: {quoted(HOSTILE)}}}\n"
    (folder / "specs" / "t.yaml").write_text(table("t", more=more), encoding="utf-8")
    return folder


@pytest.mark.parametrize("form", ["tree", "markdown", "html", "json"])
@pytest.mark.parametrize("command", ["preview", "preview --against main", "preview --against main --policy-only"])
def test_plans_are_shown_in_every_format(
    command: str,
    form: str,
    reviewed: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F10, F35: pages, comments and logs hold no hidden character, nor anything that a log obeys."""
    monkeypatch.chdir(reviewed)
    ran = deployer(*command.split(), "--format", form)
    assert FORGED in ran.out
    check_shown(ran.out)
    check_shown(ran.err)


def test_the_page_of_a_lake_is_shown(here: Path, tmp_path: Path, deployer: Deployer) -> None:
    """F10: the same for the report."""
    assert deployer("report", "--html", str(tmp_path / "lake.html")).code == 0
    page = (tmp_path / "lake.html").read_text(encoding="utf-8")
    assert FORGED in page
    check_shown(page)


def test_names_of_files_and_fields_are_shown(here: Path, tmp_path: Path, deployer: Deployer) -> None:
    """F9: `validate` printed what names of files and keys of YAML hold."""
    folder = make_project(tmp_path / "named", {"demo.yaml": INSTANCE})
    name = HOSTILE.replace("/", "")
    (folder / "specs" / f"{name}.yaml").write_text(
        f"kind: Table\n{quoted(HOSTILE)}: 1\ndatabase: {quoted(HOSTILE)}\n---\ninclude: [{quoted(HOSTILE)}]\n---\n"
        f"kind: {quoted(HOSTILE)}\n",
        encoding="utf-8",
    )
    (folder / "specs" / os.fsdecode(b"\xff\x9b.yaml")).write_text("kind: [\n")
    for more in ((), ("--json",)):
        ran = deployer("validate", "--project", str(folder), *more)
        assert ran.code == 1
        check_shown(ran.out)
        check_shown(ran.err)


def test_what_code_prints_by_itself_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """F9: libraries, warnings, logging and tracebacks do not know the console."""
    with shown_streams():
        print(HOSTILE)
        print(HOSTILE, end="", file=sys.stderr)
        sys.stdout.buffer.write(HOSTILE.encode(errors="surrogatepass") + b"\xff")
        sys.stderr.writelines([HOSTILE, "::", "error::x"])
        logging.getLogger("tests.security").warning(HOSTILE)
        sys.stderr.write(warnings.formatwarning(HOSTILE, UserWarning, HOSTILE, 1))
        try:
            raise ValueError(HOSTILE)
        except ValueError as error:
            sys.__excepthook__(type(error), error, error.__traceback__)
    printed = capsys.readouterr()
    for text in printed:
        assert FORGED in text
        assert not {each for each in text if is_hidden(each) and each != "\t"}
        assert not re.search(r"^\s*::|##\w*\[|^--- ", text, re.MULTILINE)


@given(st.lists(st.text(alphabet=":#[a-+~ \n\x1b\u202ev", max_size=6), max_size=12))
def test_how_a_text_is_divided_into_writes_changes_nothing(parts: list[str]) -> None:
    """F10: a command that is printed in pieces is one, too."""
    whole, pieces = io.StringIO(), io.StringIO()
    ShownStream(whole).write("".join(parts))
    stream = ShownStream(pieces)
    for part in parts:
        stream.write(part)
    assert pieces.getvalue() == whole.getvalue()
    assert not re.search(r"^\s*::|##\w*\[|^(---|\+\+\+|~~~) ", pieces.getvalue(), re.MULTILINE)


def test_a_long_unfinished_line_is_still_watched() -> None:
    out = io.StringIO()
    stream = ShownStream(out)
    for _ in range(1000):
        stream.write(" ")
    stream.write("::error::x\n")
    for _ in range(1000):
        stream.write("a")
    stream.write("##")
    stream.write("[error]x")
    assert not re.search(r"^\s*::|##\[", out.getvalue(), re.MULTILINE)


@given(st.text())
def test_shown_text_is_one_line_without_hidden_characters(text: str) -> None:
    """F9: for every text there is."""
    shown = visible(text)
    assert "\n" not in shown
    assert not {each for each in shown if is_hidden(each)}
    assert visible(shown) == shown
    assert json.loads(visible_json(json.dumps(text, ensure_ascii=False))) == text


def test_every_character_that_may_hide_is_shown() -> None:
    """F9: all that Unicode calls control, format, surrogate, private, unassigned, separator or ignorable."""
    for start in range(0, sys.maxunicode + 1, 4096):
        shown = visible("".join(map(chr, range(start, start + 4096))))
        assert not {each for each in set(shown) if is_hidden(each) or each == "\n"}
    assert visible("Grüße, 日本　語, नमस्ते, ❤️ ⚠️") == "Grüße, 日本　語, नमस्ते, ❤️ ⚠️"


def test_styles_stay_where_they_are() -> None:
    text = Text("a\x1bb", "red").append("c\nd", "bold").append("e")
    shown = visible_text(text)
    assert shown.plain == r"a\x1bbc\nde"
    assert [(shown.plain[span.start : span.end], span.style) for span in shown.spans] == [(r"c\nd", "bold")]
    assert visible_text(Text("plain")).plain == "plain"


def test_filters_see_every_text_before_it_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F31: a mask of secrets is asked for the console, for JSON, for documents and for what code prints."""
    monkeypatch.setattr("deployer.platform.text.visible.FILTERS", [lambda text: text.replace("s3cret", "[secret]")])
    with shown_streams():
        output.stdout().print(Text("x ").append("s3cret", "bold"), "s3cret")
        output.print_json({"s3cret": ["s3cret", 1, None, 1.5]})
        output.print_document(f"{markdown_text('s3cret')} {markdown_code('s3cret')} s3cret\n")
        output.note("s3cret")
        output.print_json_line({"a": "s3cret"})
        output.print_line("s3cret")
        print("s3cret")
    printed = "".join(capsys.readouterr())
    assert "s3cret" not in printed
    assert printed.count("secret") == 11


def test_events_of_a_run_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """F9: diagnostics and names come from programs and providers, lines from the logs of clusters."""
    urn = f"urn:pulumi:dev::demo::lake:index:Table::table/{HOSTILE}"
    events: list[Event] = [
        StepStarted(urn, "create"),
        StepProgress(urn, HOSTILE, 1, 2, HOSTILE),
        StepFailed(urn, "create", HOSTILE),
        StepStarted(urn, "create"),
        StepFinished(urn, "create", 1.0),
        Diagnostic(urn, "warning", HOSTILE),
        Diagnostic("", "error", HOSTILE),
    ]
    for as_json in (False, True):
        with StepView(as_json=as_json, clock=itertools.count(0, 100).__next__) as view:
            for event in events:
                view(event)
        log = AgentLog(as_json=as_json)
        log.report("started", table=HOSTILE, service=HOSTILE, run=HOSTILE, why=HOSTILE)
        log.report("trouble", why=HOSTILE)
        meter = Meter(as_json=as_json)
        watcher = _watcher(meter, "job", HOSTILE)
        watcher.on_status(RunStatus(RunState.RUNNING, HOSTILE, HOSTILE))
        watcher.on_line(HOSTILE)
        printed = capsys.readouterr().err
        assert printed.count(FORGED) > 20
        check_shown(printed)


def test_questions_and_errors_are_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """F9: a question names what it is about."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\nname\n"))
    with shown_streams():
        assert output.ask_yes_or_no(HOSTILE)
        assert output.ask(HOSTILE) == "name"
        output.print_error(DeployerError(HOSTILE, where=HOSTILE, remedy=HOSTILE), as_json=False)
    printed = capsys.readouterr()
    check_shown(printed.out)
    check_shown(printed.err)
    assert all(line.startswith(("a", "error: ", "  | ")) for line in printed.err.splitlines())


def test_nothing_prints_around_the_console() -> None:
    """F9: a command that wrote to a stream by itself would send what it is given; none does."""
    allowed = {"output.py", "streams.py", "reference.py", "main.py"}
    for file in (REPOSITORY / "deployer" / "cli").glob("*.py"):
        source = file.read_text(encoding="utf-8")
        if file.name not in allowed:
            assert not re.search(
                r"\bConsole\(|sys\.(stdout|stderr)\.write|(?<![._\w])print\(|typer\.(echo|prompt|confirm)"
                r"|rich\.segment|Segment\(|link=",
                source,
            ), file


LANCE_LOGS = """\
import atexit, shutil, sys
from pathlib import Path

def log():
    import lance, pyarrow
    name = "evil\\n::error::x"
    rows = pyarrow.table({name: list(range(100))})
    lance.write_dataset(rows, "t.lance").create_scalar_index(name, "BTREE")
    for index in Path("t.lance/_indices").iterdir():
        shutil.rmtree(index)
    for _ in range(2):
        dataset = lance.write_dataset(rows, "t.lance", mode="append")
    dataset.optimize.optimize_indices()
    print("optimized")

atexit.register(log)
sys.argv = ["deployer", "--version"]
from deployer.__main__ import main
main()
"""


@pytest.mark.parametrize("asked", [False, True])
def test_lance_does_not_log_past_the_streams(asked: bool, tmp_path: Path) -> None:
    """F9, F10: Lance warns of an index that it cannot open, with the column's name, on the file of stderr itself."""
    environment = {name: value for name, value in os.environ.items() if name != "LANCE_LOG"}
    if asked:
        environment["LANCE_LOG"] = "warn"
    command = [sys.executable, "-c", LANCE_LOGS]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "optimized" in ran.stdout, ran.stderr
    assert ("::error::x" in ran.stderr) == asked  # that is what the person who sets it gets


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ftp://evil.example/x",
            "FTP://evil.example",
            "http://evil.example",
            "https://evil.example",
            "www.evil.example",
        ),
        *("mailto:somebody@evil.example", "xmpp:somebody@evil.example/x", "somebody@evil.example", "@everyone", "#12"),
        *("org/repository#12", "GH-12", ":smile:", ":+1:", ":100:", ":white_check_mark:", "a:b:c", "<!-- x", "--> x"),
        *(
            "<https://evil.example>",
            "[x](y)",
            "![x](y)",
            "`x`",
            "<b>x</b>",
            "&lt;",
            "$x$",
            "~~x~~",
            "**x**",
            "a|b",
            "\\",
        ),
        *("##[group]x", "::error::x", "| a |", "# x", "- x", "1. x", "> x", "---", "```", "[x]: y", "[^1]"),
    ],
)
def test_markdown_makes_nothing_of_a_text(text: str) -> None:
    """F35: GitHub makes links of `ftp://…` and emoji of `:name:`."""
    safe = markdown_text(text)
    live = r"(?i)(https?|ftp)://|www\.|(mailto|xmpp):\w|\w@\w|@\w|(?<!&)#\d|GH-\d|:[\w+\\-]*[a-z1][\w+\\-]*:"
    assert not re.search(live, safe), safe
    html = (
        MarkdownIt("commonmark").enable("table").enable("strikethrough").render(f"- {safe}\n\n|a|\n|-|\n| {safe} |\n")
    )
    assert not re.search(r"<(a|img|b|code|strong|em|s|h1|hr|blockquote|ol|!--)\b", html), html
    assert without_tags(html).count(visible(text)) == 2


def without_tags(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html)).replace("\u200c", "")


def test_a_comment_of_html_hides_no_change_from_a_summary(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F10: `<!--` in one description and `-->` in another hid what lay between them."""
    specs = {"demo.yaml": INSTANCE, **{f"{name}.yaml": table(name, "b: int32") for name in ("aa", "mm", "zz")}}
    project = make_project(tmp_path / "project", specs)
    git(project, "init", "-q", "-b", "main")
    commit(project)
    for name, text in {"aa": "x <!-- ", "zz": "z -->"}.items():
        more = f"description: {quoted(text)}\n"
        (project / "specs" / f"{name}.yaml").write_text(table(name, "b: int32", more=more), encoding="utf-8")
    (project / "specs" / "mm.yaml").write_text(table("mm"), encoding="utf-8")
    monkeypatch.chdir(project)
    html = MarkdownIt("commonmark").render(deployer("preview", "--against", "main", "--format", "markdown").out)
    assert "<!--" not in html
    assert "drop column b" in without_tags(html)
