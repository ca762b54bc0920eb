"""A real provider for tests: resources are files below a folder. It runs in-process and as a plugin executable.

`files:index:File` has `name` and `kind` (either forces a replacement), `content`, `labels`, `secret`. Its id is
`NAME.KIND`, its outputs add `size` and `path`. Every effect is followed by a line in ROOT/log, so that tests can
count what was done. `fail` names operations that end with an error (`again`: a create of what exists); `wait` makes an
operation take that many seconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pulumi
from pulumi.provider.experimental import provider as sdk
from pulumi.provider.experimental.property_value import PropertyValue

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
Values = dict[str, PropertyValue]


class FileProvider(sdk.Provider):
    """`root` is the folder; a configured `root` takes its place."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(os.environ["FILES_ROOT"])

    async def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        if "root" in request.args:
            self.root = Path(_text(request.args["root"]))
        secret = [f"{name}!" if value.is_secret else name for name, value in request.args.items()]
        self.log("configure", ",".join(sorted(secret)))
        return await super().configure(request)

    async def check_config(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        if "colour" in request.new_inputs:
            return sdk.CheckResponse(request.new_inputs, [sdk.CheckFailure("colour", "files have none")])
        return sdk.CheckResponse(request.new_inputs)

    async def diff_config(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        return sdk.DiffResponse(replaces=["root"] if _changed(request, "root") else [])

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        known = {"name", "kind", "content", "labels", "secret", "fail", "wait", "needs", "source"}
        failures = [sdk.CheckFailure(name, "no such property") for name in request.new_inputs if name not in known]
        inputs = {"kind": PropertyValue("txt"), **request.new_inputs}
        return sdk.CheckResponse(inputs, failures)

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        kinds = {}
        for name in ("name", "kind", "content", "labels", "secret", "needs", "source"):
            if name in request.ignore_changes or not _changed(request, name):
                continue
            replaces = name in {"name", "kind"}
            kinds[name] = sdk.PropertyDiff(
                sdk.PropertyDiffKind.UPDATE_REPLACE if replaces else sdk.PropertyDiffKind.UPDATE, True
            )
        replaces_ = [name for name in kinds if name in {"name", "kind"}]
        return sdk.DiffResponse(bool(kinds), replaces_, [], False, list(kinds), kinds)

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        if request.timeout:
            self.log("configure timeout", str(request.timeout))
        if request.preview:
            outputs = {**request.properties, "size": PropertyValue(UNKNOWN), "path": PropertyValue(UNKNOWN)}
            return sdk.CreateResponse("", outputs)
        id_ = f"{_text(request.properties['name'])}.{_text(request.properties['kind'])}"
        self._prepare("create", id_, request.properties)
        resumed = self._file(id_).exists()
        if resumed and str(request.properties.get("fail", PropertyValue("")).value) == "again":
            raise RuntimeError(f"{id_} exists")
        outputs = self._write(id_, request.properties)
        self.log("create-again" if resumed else "create", id_)
        return sdk.CreateResponse(id_, outputs)

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        if request.preview:
            return sdk.UpdateResponse({**request.news, "size": PropertyValue(UNKNOWN)})
        self._prepare("update", request.resource_id, request.news)
        outputs = self._write(request.resource_id, request.news)
        self.log("update", request.resource_id)
        return sdk.UpdateResponse(outputs)

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        file = self._file(request.resource_id)
        if not file.exists():
            return sdk.ReadResponse(None)
        inputs = dict(request.inputs) or {
            "name": PropertyValue(request.resource_id.rpartition(".")[0]),
            "kind": PropertyValue(request.resource_id.rpartition(".")[2]),
        }
        content = PropertyValue(file.read_text())
        if _text(inputs.get("content", PropertyValue(""))) != content.value:
            inputs["content"] = content
        return sdk.ReadResponse(request.resource_id, self._outputs(request.resource_id, inputs), inputs)

    async def delete(self, request: sdk.DeleteRequest) -> None:
        file = self._file(request.resource_id)
        self._prepare("delete", request.resource_id, request.properties)
        resumed = not file.exists()
        file.unlink(missing_ok=True)
        self.log("delete-again" if resumed else "delete", request.resource_id)

    async def invoke(self, request: sdk.InvokeRequest) -> sdk.InvokeResponse:
        if request.tok != "files:index:content":
            return sdk.InvokeResponse(None, [sdk.CheckFailure("", f"no function {request.tok}")])
        return sdk.InvokeResponse({"content": PropertyValue(self._file(_text(request.args["id"])).read_text())})

    # --- files

    def log(self, what: str, of: str) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "log").open("a") as log:
            log.write(f"{what} {of}\n")

    def _prepare(self, what: str, id_: str, values: Values) -> None:
        if "wait" in values:
            time.sleep(float(str(values["wait"].value)))
        if what in str(values["fail"].value if "fail" in values else "").split(","):
            raise RuntimeError(f"the disk refuses to {what} {id_}")
        if "fail" in values and values["fail"].value == "die":
            sys.stderr.write("out of luck\n")
            sys.stderr.flush()
            os._exit(7)

    def _file(self, id_: str) -> Path:
        return self.root / "files" / id_

    def _write(self, id_: str, values: Values) -> Values:
        file = self._file(id_)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_text(values.get("content", PropertyValue(""))))
        return self._outputs(id_, values)

    def _outputs(self, id_: str, values: Values) -> Values:
        file = self._file(id_)
        return {**values, "size": PropertyValue(float(file.stat().st_size)), "path": PropertyValue(str(file))}


def _text(value: PropertyValue) -> str:
    return str(value.value)


def _changed(request: sdk.DiffRequest, name: str) -> bool:
    before, after = request.old_state.get(name), request.new_inputs.get(name)
    if before and after and isinstance(before.value, pulumi.Asset):
        return vars(before.value) != vars(after.value)
    return (before.value if before else None) != (after.value if after else None)


def log_of(root: Path) -> list[str]:
    """What was done below `root`, without the configuring."""
    log = root / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line for line in lines if not line.startswith("configure")]


def files_of(root: Path) -> dict[str, str]:
    folder = root / "files"
    return {file.name: file.read_text() for file in sorted(folder.iterdir())} if folder.exists() else {}


if __name__ == "__main__":
    from pulumi.provider.experimental.server import main

    if len(sys.argv) > 2 and sys.argv[2] == "--describe":
        print(json.dumps({"provider": "files"}))
    else:
        main(sys.argv[1:], "1.0.0", FileProvider())
