"""The command `gh` of the tests: the calls of GitHub's API that deployer's workflows make, over a folder.

`gh api --method METHOD PATH [--raw-field NAME=VALUE …] [--input -]`. The folder, `FAKE_GITHUB`, holds `origin.git`,
`pulls.json` and `comments.json`. The token says what may be done: `token:` and a JSON object of permissions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["FAKE_GITHUB"])
PERMISSIONS: dict[str, str] = json.loads(os.environ.get("GH_TOKEN", "token:{}").removeprefix("token:"))


def main(arguments: list[str]) -> None:
    assert arguments[:2] == ["api", "--method"], arguments
    method, path, *rest = arguments[2:]
    fields, body = {}, None
    while rest:
        option, value, *rest = rest
        if option == "--raw-field":
            name, _, text = value.partition("=")
            fields[name] = text
        else:
            assert (option, value) == ("--input", "-"), option
            body = json.load(sys.stdin)
    print(json.dumps(_answer(method, path, fields, body)))


def _answer(method: str, path: str, fields: dict[str, str], body: Any) -> Any:
    _, _owner, _repository, *rest = path.split("/")
    match method, rest:
        case "GET", ["pulls"]:
            _need("pull-requests", "contents")
            keys = ("state", "base")
            return [
                pull
                for pull in _read("pulls")
                if fields["head"] == pull["head"]["label"]
                and all(fields[key] == (pull[key] if key == "state" else pull[key]["ref"]) for key in keys)
            ]
        case "GET", ["compare", commits]:
            _need("contents")
            return {"merge_base_commit": {"sha": _git("merge-base", *commits.split("..."))}}
        case "GET", ["git", "trees", commit]:
            _need("contents")
            listed = [line.partition("\t") for line in _git("ls-tree", commit).splitlines()]
            found = [(about.split(), name) for about, _, name in listed]
            return {"tree": [{"mode": a[0], "type": a[1], "sha": a[2], "path": name} for a, name in found]}
        case "GET", ["issues", number, "comments"]:
            page, size = int(fields["page"]), int(fields["per_page"])
            return [each for each in _read("comments") if each["issue"] == int(number)][(page - 1) * size :][:size]
        case "POST", ["issues", number, "comments"]:
            _need("pull-requests", write=True)
            comments = _read("comments")
            comments.append({"id": len(comments) + 1, "issue": int(number), "user": _BOT, **_checked(body)})
            return _write("comments", comments)[-1]
        case "PATCH", ["issues", "comments", number]:
            _need("pull-requests", write=True)
            comments = _read("comments")
            (own,) = (each for each in comments if each["id"] == int(number))
            assert own["user"] == _BOT, "the token of a workflow edits no comment of a person"
            own.update(_checked(body))
            return _write("comments", comments)[0]
    raise SystemExit(f"gh: {method} {path} is not in the tests")


_BOT = {"login": "github-actions[bot]"}


def _checked(body: dict[str, str]) -> dict[str, str]:
    assert body.keys() == {"body"} and 0 < len(body["body"]) <= 65_536, "body is too long (maximum is 65536 characters)"
    return body


def _need(*names: str, write: bool = False) -> None:
    enough = ("write",) if write else ("read", "write")
    if not any(PERMISSIONS.get(name) in enough for name in names):
        raise SystemExit(f"gh: Resource not accessible by integration (HTTP 403): {names}")


def _read(name: str) -> list[Any]:
    found: list[Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _write(name: str, value: list[Any]) -> list[Any]:
    (FOLDER / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return value


def _git(*arguments: str) -> str:
    assert all(re.fullmatch(r"[\w-]+", each) for each in arguments), arguments
    command = ["git", "--git-dir", str(FOLDER / "origin.git"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
