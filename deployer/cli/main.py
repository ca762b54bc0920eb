"""The `deployer` command: registers the commands, and turns every error into a message and an exit code.

Exit codes: 0 done; 1 an error; 2 there are changes, differences or unhealthy services (`preview --exit-code`, `drift`,
`state verify`, `service check`); 3 refused; 130 interrupted.

Command modules import nothing large at module level: Spark, Lance and Pulumi are loaded in the commands that use them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command
from typer.models import TyperInfo

from deployer import __version__
from deployer.cli.activities import activity_of
from deployer.cli.commands.agent import command as agent
from deployer.cli.commands.data import (
    changes,
    describe,
    history,
    import_table,
    ingest,
    query,
    report,
    search,
    sql,
    tables,
)
from deployer.cli.commands.deploy import cost, destroy, doctor, drift, preview, up
from deployer.cli.commands.deploy import plugin as plugin_group
from deployer.cli.commands.project import explain, graph, init, package, render, schema, validate
from deployer.cli.commands.ui import command as ui
from deployer.cli.console.activity import show_activity
from deployer.cli.console.on_screen import end_activity
from deployer.cli.console.output import print_error, stderr
from deployer.cli.console.streams import own_streams, shown_streams
from deployer.cli.groups import restore
from deployer.cli.groups import savepoint as savepoint_group
from deployer.cli.groups import stack as stack_group
from deployer.cli.groups.packages import (
    catalog_group,
    column_group,
    job_group,
    rows_group,
    service_group,
    state_group,
    table_group,
    view_group,
)
from deployer.cli.options import TrustUdfs
from deployer.cli.remote import follow
from deployer.errors import DeployerError, EngineFailed, Interrupted
from deployer.platform.files.full_disk import DISK_FULL
from deployer.platform.text import masking

app = typer.Typer(
    name="deployer",
    help="Infrastructure as code for lakehouse tables.",
    epilog="Exit codes: 0 done, 1 error, 2 changes (preview --exit-code, drift, state verify) or unhealthy "
    "services (service check), 3 refused, 130 stopped.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: The commands in the groups that help shows. Within a group, Typer shows single commands before groups of commands.
_COMMANDS: Mapping[str, Sequence[tuple[str, Callable[..., Any]] | typer.Typer]] = {
    "Specs": (
        ("init", init.init),
        ("validate", validate.validate),
        ("render", render.render),
        ("graph", graph.graph),
        schema.app,
    ),
    "Plan and apply": (
        ("preview", preview.preview),
        ("up", up.up),
        ("drift", drift.drift),
        ("import", import_table.import_table),
        ("cost", cost.cost),
        ("destroy", destroy.destroy),
    ),
    "Data": (
        ("ingest", ingest.ingest),
        ("query", query.query),
        ("search", search.search),
        ("sql", sql.sql),
        ("changes", changes.changes),
        rows_group,
    ),
    "Tables and services": (
        ("tables", tables.tables),
        ("describe", describe.describe),
        ("history", history.history),
        ("report", report.report),
        ("ui", ui.ui),
        ("restore", restore.restore),
        ("agent", agent.agent),
        table_group,
        column_group,
        view_group,
        catalog_group,
        job_group,
        savepoint_group.app,
        service_group,
    ),
    "Machines and clusters": (
        ("doctor", doctor.doctor),
        ("explain", explain.explain),
        ("package", package.package),
        ("follow", follow.follow),
        plugin_group.app,
    ),
    "State": (
        state_group,
        stack_group.app,
    ),
}
for panel, commands in _COMMANDS.items():
    for each in commands:
        if isinstance(each, typer.Typer):
            app.add_typer(each, rich_help_panel=panel)
        else:
            app.command(each[0], rich_help_panel=panel)(each[1])
app.command("plan", hidden=True, help="The same as preview.")(preview.preview)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"deployer {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    trust_udfs: TrustUdfs = False,
) -> None:
    """Infrastructure as code for lakehouse tables."""
    if trust_udfs:
        context.call_on_close(_trust_packages())


def _trust_packages() -> Callable[[], None]:
    """Allows this command, and the jobs that it starts, to run packaged functions; returns a function that undoes
    this."""
    import os

    from deployer.platform.isolation.trusted_functions import PACKAGES_VARIABLE

    before = os.environ.get(PACKAGES_VARIABLE)
    os.environ[PACKAGES_VARIABLE] = "1"

    def restore() -> None:
        if before is None:
            os.environ.pop(PACKAGES_VARIABLE, None)
        else:
            os.environ[PACKAGES_VARIABLE] = before

    return restore


@cache
def _command(name: str | None = None) -> Callable[..., Any]:
    """Returns Typer's command, which is made once: Typer reads the options of each command from its annotations.

    With the name of a command or of a group, only that one is made, because making all takes 40 ms.
    """
    chosen = copy(app)
    if name is not None:
        chosen.registered_commands = [each for each in app.registered_commands if each.name == name]
        chosen.registered_groups = [each for each in app.registered_groups if _name_of(each) == name]
    command = get_command(chosen)
    _style_help(command)
    _report_interruption(command)
    return command


def _name_of(group: TyperInfo) -> object:
    own = group.typer_instance.info.name if group.typer_instance is not None else None
    return group.name if isinstance(group.name, str) else own


def _named(arguments: Sequence[str]) -> str | None:
    """Returns the command or group that the arguments begin with; None where they begin with anything else."""
    first = next((each for each in arguments if each != "--trust-udfs"), None)
    names = {*(each.name for each in app.registered_commands), *map(_name_of, app.registered_groups)}
    return first if first in names else None


def _report_interruption(command: Any) -> None:
    """Makes Ctrl-C an error with a message: Typer would turn it into an exit code without a message."""
    invoke = command.invoke

    def invoke_command(context: typer.Context) -> Any:
        try:
            return invoke(context)
        except KeyboardInterrupt as stop:
            raise Interrupted("interrupted") from stop

    command.invoke = invoke_command


def _style_help(command: Any) -> None:
    """Prints help with Typer's styles, which is safe because it is deployer's own text."""
    shown = command.format_help

    def format_help(*arguments: Any) -> None:
        with own_streams():
            shown(*arguments)

    command.format_help = format_help
    for each in getattr(command, "commands", {}).values():
        _style_help(each)


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code. Prints errors and never raises them. Known secrets are masked."""
    with masking.scope(), shown_streams():
        try:
            return _run(arguments)
        finally:
            end_activity()


def _run(arguments: Sequence[str]) -> int:
    as_json = "--json" in arguments
    if (doing := activity_of(arguments)) is not None:
        show_activity(doing, as_json=as_json)
    try:
        code = _command(_named(arguments))(list(arguments), standalone_mode=False)
        return code if isinstance(code, int) else 0
    except TyperException as error:
        return _usage_error(error)
    except (typer.Abort, KeyboardInterrupt):
        print_error(Interrupted("interrupted"), as_json=as_json)
        return Interrupted.exit_code
    except typer.Exit as stop:
        return stop.exit_code
    except DeployerError as error:
        if isinstance(error, EngineFailed):
            error = _of_the_lake(error)
        print_error(error, as_json=as_json)
        return error.exit_code
    except (RecursionError, MemoryError) as error:
        what = "a value is nested too deep" if isinstance(error, RecursionError) else "there is not enough memory"
        remedy = "check the files and the lake that the message names"
        print_error(DeployerError(f"{what} to be read or written", remedy=remedy), as_json=as_json)
        return DeployerError.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader ended, as in `deployer query … | head`
        return 0
    except Exception as error:
        failure = _interruption(error) or (_of_the_system(error) if isinstance(error, OSError) else None)
        if failure is None:
            raise
        print_error(failure, as_json=as_json)
        return failure.exit_code


def _interruption(error: Exception) -> DeployerError | None:
    """Returns the error for a call of Lance or Arrow that Ctrl-C ended and that raised its own error; None for other
    errors."""
    from deployer.datasets.errors import is_interruption

    return Interrupted("interrupted") if is_interruption(error) else None


def _of_the_lake(error: EngineFailed) -> EngineFailed:
    """Returns the engine's error with addresses instead of URNs, and with remedies for the AWS errors in it."""
    from deployer.cli.commands.deploy.aws_remedies import remedies_for
    from deployer.provider.urn import without_urns

    remedy = ": ".join(filter(None, (error.remedy, remedies_for(error.what))))
    return EngineFailed(without_urns(error.what), where=error.where, remedy=remedy)


def _of_the_system(error: OSError) -> DeployerError | None:
    """Returns an error of the file system, or of S3 as Lance reports it; None for an error that a user cannot fix."""
    if error.errno in DISK_FULL:
        return DeployerError(
            f"the disk is full: {error.strerror or error}",
            where=error.filename,
            remedy="free space and run the command again",
        )
    if error.filename is not None:
        return DeployerError(
            error.strerror or str(error), where=error.filename, remedy="check the path and its permissions"
        )
    from deployer.platform.storage.s3_errors import refusal_in

    refusal = refusal_in(str(error))
    return None if refusal is None else DeployerError(refusal.what, remedy=refusal.remedy)


def _usage_error(error: TyperException) -> int:
    """Reports a command line that cannot be parsed; returns 1, because 2 means that a preview found changes."""
    message = getattr(error, "format_message", lambda: "")()
    context = getattr(error, "ctx", None)
    if message:
        hint = f"; try '{context.command_path} --help'" if context else ""
        text = message.rstrip(".").replace(": Value error, ", ": ")
        stderr().print(f"error: {text}{hint}", style="red")
    return 1
