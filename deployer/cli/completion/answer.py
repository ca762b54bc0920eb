"""The answer to a shell that completes a word where a live name is expected.

Typer's scripts for shells are used (`deployer --install-completion`), and answers have the form that they read.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from deployer.cli.completion.grammar import Place, grammar, place_of

VARIABLE = "_DEPLOYER_COMPLETE"


def answer(environ: Mapping[str, str]) -> int | None:
    """Prints the names that fit the word, and returns the exit code; None where Typer has to answer.

    Nothing is printed where names cannot be read, because a shell cannot show errors.
    """
    requested = environ.get(VARIABLE, "")
    shell = requested.removeprefix("complete_")
    if shell == requested or shell not in ("bash", "zsh", "fish", "powershell", "pwsh"):
        return None
    words, incomplete = _words_of(shell, environ)
    place = place_of(grammar(), words, incomplete)
    if place is None:
        return None
    names: list[str] = []
    with suppress(Exception):  # for example, the project has no lake, or another process is writing the state
        names = [f"{place.before}{name}" for name in _names(place) if name.startswith(place.part)]
    if shell == "fish" and environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if names else 1
    sys.stdout.write(_format_names(shell, names))
    return 0


def _words_of(shell: str, environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Returns the complete words before the incomplete one, without the program's name, and the incomplete word."""
    if shell == "bash":
        words, at = _split(environ.get("COMP_WORDS", "")), int(environ.get("COMP_CWORD") or 0)
        words, incomplete = words[1:at], words[at] if at < len(words) else ""
        if incomplete == "=":  # Bash splits `--stack=dev` at the sign
            incomplete = ""
        return [word for word in words if word != "="], incomplete
    text = environ.get("_TYPER_COMPLETE_ARGS", "")
    words = _split(text)[1:]
    if shell in ("powershell", "pwsh"):
        incomplete = environ.get("_TYPER_COMPLETE_WORD_TO_COMPLETE", "")
        return words[:-1] if incomplete and words else words, incomplete
    return (words[:-1], words[-1]) if words and not text.endswith(" ") else (words, "")


def _split(text: str) -> list[str]:
    """Returns the words of a line. The last word may have an open quote."""
    reading = shlex.shlex(text, posix=True)
    reading.whitespace_split = True
    reading.commenters = ""
    found: list[str] = []
    try:
        found.extend(reading)
    except ValueError:
        found.append(reading.token)
    return found


def _names(place: Place) -> Iterable[str]:
    from deployer.cli.completion.place import root_of, stacks

    if place.kind == "stack":
        return stacks(place.given)
    root = root_of(place.given)
    if root is None:
        return ()
    from deployer.cli.completion.names import table_names, table_parts

    match place.kind:
        case "table":
            return sorted(table_names(root))
        case "address":
            return sorted(f"table/{name}" for name in table_names(root))
    found = table_parts(root, place.given.get("table", ""))
    if found is None:
        return ()
    match place.kind:
        case "service":
            return found.services
        case "new-service":
            return sorted({*grammar()["services"]} - {*found.services})
        case _:
            return found.columns


def _format_names(shell: str, names: list[str]) -> str:
    """Returns the names in the form that Typer's script for the shell reads."""
    match shell:
        case "bash":
            return "\n".join(map(shlex.quote, names))
        case "zsh":
            return "_arguments '*: :((" + "\n".join(f'"{_zsh(name)}"' for name in names) + "))'" if names else ""
        case "fish":
            return "\n".join(names)
        case _:
            return "\n".join(f"{name}:::" for name in names)


def _zsh(name: str) -> str:
    for before, after in (('"', '""'), ("'", "''"), ("$", "\\$"), ("`", "\\`"), (":", r"\\:")):
        name = name.replace(before, after)
    return name


def answer_if_asked() -> None:
    """Answers a shell that asks for a live name, and then ends the process; returns if no shell asks."""
    code = answer(os.environ)
    if code is not None:
        sys.stdout.flush()
        os._exit(code)
