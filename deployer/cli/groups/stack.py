"""`deployer stack`: writes and reads Pulumi's state of a stack as a file, to move the state between backends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deployer.cli.commands.deploy.up import Yes
from deployer.cli.options import DEFAULT_STACK, AsJson, LockTimeout, ProjectDir, SpecsPath, StackName

app = typer.Typer(
    name="stack",
    help="Move Pulumi's state of a stack between backends.",
    no_args_is_help=True,
)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write, such as dev.json.", show_default=False)],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Write what Pulumi's state of the stack holds into one file, as `pulumi stack export` does. Changes nothing.

    Secrets are encrypted in it as they are in the state. What the lake holds is not in it: see `state export`.
    """
    import json

    from deployer.app.stack.engine import engine_for
    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import print_json, stdout
    from deployer.errors import InvalidInput, NotFound, Refused
    from deployer.platform.files.private import write_private
    from deployer.platform.text.formatting import count

    workspace = open_workspace(project, stack, specs)
    if file.exists() and not force:
        raise Refused("the file exists already", where=file, remedy="give another name, or --force")
    if not file.absolute().parent.is_dir():
        raise InvalidInput("no such folder", where=file.absolute().parent, remedy="create it first")
    exported = engine_for(workspace, workspace.lake()).export(workspace.stack_ref)
    resources = _resources(exported)
    if not resources and not exported["deployment"].get("pending_operations"):
        raise NotFound(f"stack {stack} has no state", where=workspace.dir, remedy="check --stack and the backend's URL")
    write_private(file, json.dumps(exported, indent=4))
    if as_json:
        print_json({"file": str(file), "resources": len(resources)})
    else:
        stdout().print(f"wrote {file}: {count(len(resources), 'resource')}", soft_wrap=True)
    return 0


@app.command("import")
def import_stack(
    file: Annotated[
        Path, typer.Argument(help="A file of `stack export` or `pulumi stack export`.", show_default=False)
    ],
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    yes: Yes = False,
    lock_timeout: LockTimeout = None,
    as_json: AsJson = False,
) -> int:
    """Replace Pulumi's state of the stack by an export; a copy of the former state is kept beside it.

    Asks first where the stack has a state. No resource is touched: the next `preview` compares with what is there.
    """
    from deployer.app.stack.engine import engine_for
    from deployer.app.stack.lock_wait import held_in_time
    from deployer.app.workspace import open_workspace
    from deployer.cli.commands.deploy.up import confirm
    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.console.reporter import ConsoleReporter
    from deployer.platform.text.formatting import count

    workspace = open_workspace(project, stack, specs)
    exported = _read(file, f"urn:pulumi:{stack}::{workspace.project.name}::")
    lake = workspace.lake()
    with held_in_time(workspace, lake, lock_timeout, ConsoleReporter()):
        engine = engine_for(workspace, lake)
        there = len(_resources(engine.export(workspace.stack_ref)))
        if there and not yes:
            confirm(f"Stack {stack} has {count(there, 'resource')} in its state. Replace it with this file?")
        engine.restore(workspace.stack_ref, exported)
    resources = len(_resources(exported))
    if as_json:
        print_json({"file": str(file), "resources": resources, "replaced": there})
    else:
        stdout().print(f"imported {file}: {count(resources, 'resource')}; now run deployer preview", soft_wrap=True)
    return 0


@app.command("change-secrets-provider")
def change_secrets_provider(
    provider: Annotated[
        str,
        typer.Argument(
            help="passphrase, or a key in AWS KMS such as 'awskms://alias/NAME?region=REGION'.", show_default=False
        ),
    ],
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Encrypt the secrets of the stack's configuration and state with a new key. No resource is touched.

    The former key is needed. A new passphrase is asked for, or is in DEPLOYER_NEW_PASSPHRASE. Older copies of the
    state (its .bak and history) keep the former key.
    """
    import os
    import sys

    from deployer.app.workspace import specs_place
    from deployer.cli.console.output import ask_new_secret, note, print_json, stdout
    from deployer.engine import StackRef
    from deployer.engine.persistence.rekey import change_keeper
    from deployer.engine.secrets.passphrase import NEW_VARIABLE
    from deployer.errors import InvalidInput

    found, _, _ = specs_place(project, stack, specs)
    if provider == "passphrase" and NEW_VARIABLE not in os.environ:
        if not sys.stdin.isatty():
            raise InvalidInput(
                "stdin is not a terminal, so the new passphrase cannot be asked for",
                where=NEW_VARIABLE,
                remedy="set that variable to it",
            )
        os.environ[NEW_VARIABLE] = ask_new_secret("New passphrase")
    change_keeper(StackRef(found, stack), provider)
    kind = provider.partition(":")[0]
    if as_json:
        print_json({"stack": stack, "provider": kind})
        return 0
    stdout().print(f"the secrets of stack {stack} have a new key, by {kind}", soft_wrap=True)
    note("Older copies of the state (its .bak and history) keep the former key.")
    note("Change the secrets themselves too if others know that key.")
    return 0


def _read(file: Path, prefix: str) -> dict[str, Any]:
    """Returns the export in the file. Raises InvalidInput for another document, and for resources whose URNs do not
    begin with `prefix`, which names the project and stack. Raises NotFound for a missing file."""
    from deployer.engine.values.checkpoint_shape import fault_of_deployment
    from deployer.errors import InvalidInput, NotFound
    from deployer.platform.files.json_documents import NotADocument, read_document
    from deployer.platform.files.reading import MAX_JSON_BYTES, read_limited

    def wrong(why: object) -> InvalidInput:
        return InvalidInput(
            f"not an export of a stack: {why}", where=file, remedy="write one by `deployer stack export`"
        )

    try:
        exported = read_document(read_limited(file, MAX_JSON_BYTES))
    except FileNotFoundError:
        raise NotFound("no such file", where=file, remedy="give a file of `deployer stack export`") from None
    except OSError as error:
        raise InvalidInput(f"it cannot be read: {error.strerror}", where=file, remedy="check the file") from None
    except NotADocument as error:
        raise wrong(error) from None
    if not isinstance(exported, dict) or not isinstance(version := exported.get("version"), int):
        raise wrong("it has no version")
    if version != 3:
        raise InvalidInput(
            f"an export of version {version}, this deployer reads version 3", where=file, remedy="use the Pulumi CLI"
        )
    if not isinstance(deployment := exported.get("deployment"), dict):
        raise wrong("it has no deployment")
    if (fault := fault_of_deployment(deployment)) is not None:
        raise wrong(fault)
    urns = [str(each["urn"]) for each in _resources(exported)]
    if others := sorted({urn.rpartition("::")[2] for urn in urns if not urn.startswith(prefix)}):
        raise InvalidInput(
            f"it is of another project or stack: {', '.join(others[:3])}",
            where=file,
            remedy="give its project and --stack",
        )
    found: dict[str, Any] = exported
    return found


def _resources(exported: dict[str, Any]) -> list[dict[str, Any]]:
    return list((exported.get("deployment") or {}).get("resources") or ())
