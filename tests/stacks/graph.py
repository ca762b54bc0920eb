"""The resources of a stack as Pulumi's state has them, without what differs from run to run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deployer import __version__
from deployer.engine.values.values import ASSET, SIG

_KEPT = ("type", "inputs", "protect", "retainOnDelete")


def graph_of(project: Path, stack: str = "dev") -> list[dict[str, Any]]:
    """Resources by name: type, inputs, protection, parent and dependencies, the last two as names."""
    found = []
    for resource in _resources(project, stack, _without_ids):
        if resource["type"].startswith("pulumi:"):
            continue
        kept = {name: resource[name] for name in _KEPT if resource.get(name)}
        kept["name"] = _name(resource["urn"])
        if not resource["type"].startswith("aws:"):
            kept.pop("inputs", None)
        if (parent := _name(resource.get("parent", ""))) and "pulumi:pulumi:Stack" not in resource["parent"]:
            kept["parent"] = parent
        if needed := sorted({_name(urn) for urn in resource.get("dependencies", ())}):
            kept["needs"] = needed
        found.append(kept)
    return sorted(found, key=lambda each: (each["type"], each["name"]))


def outputs_of(project: Path, stack: str = "dev") -> dict[str, Any]:
    """What the stack exports."""
    resources = _resources(project, stack, str)
    found: dict[str, Any] = next(each for each in resources if each["type"] == "pulumi:pulumi:Stack")["outputs"]
    return found


def check_golden(graph: list[dict[str, Any]], golden: Path) -> None:
    """`UPDATE_GOLDEN=1` writes the file instead."""
    text = json.dumps(graph, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def _resources(project: Path, stack: str, rewritten: Callable[[str], str]) -> Any:
    file = project / ".pulumi" / "stacks" / "lakes" / f"{stack}.json"
    text = rewritten(file.read_text(encoding="utf-8"))
    return json.loads(text, object_hook=_asset)["checkpoint"]["latest"]["resources"]


def _without_ids(text: str) -> str:
    text = re.sub(r"(:/applications/)\w+", r"\1ID", text)
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "KEY", text)
    text = re.sub(r'(ApplicationId\\?": ?\\?")\w+', r"\1ID", text)
    text = re.sub(r'(applicationId[\\": \[]+)\w{16}\b', r"\1ID", text)
    text = re.sub(r"(-Encryption[A-Za-z]*-)[0-9a-f]{8}\b", r"\1DIGEST", text)
    text = re.sub(r"\bj-[0-9A-Z]{13}\b", "CLUSTER", text)
    text = re.sub(r"http://127\.0\.0\.1:\d+", "https://sqs", text)
    return re.sub(r"(/_jobs/)[0-9a-f]{64}/", r"\1SHA256/", text)


def _asset(value: dict[str, Any]) -> dict[str, Any]:
    """A file by its name alone, without the version of deployer."""
    return {"asset": Path(value["path"]).name.replace(__version__, "VERSION")} if value.get(SIG) == ASSET else value


def _name(urn: str) -> str:
    return urn.split("::", 3)[-1]
