"""The definition of the values of a computed column: by SQL over columns of its table, or by a Python function of them.

The definition is in the metadata of the column's field in Lance (`deployer:computed`, as JSON), so it travels with
renames, restores and copies of the table. `identity` names a version of it, with which what filled a data file is
compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from deployer.platform.sql.renaming import canonical_expression, rename_in_expression

COMPUTED_NOTE = b"deployer:computed"  #: the key of the field's metadata
MAX_VERSION = 64  #: characters
VERSION = rf"[A-Za-z0-9._+-]{{1,{MAX_VERSION}}}"
_HASH = 16  #: characters of a hash that are part of an identity
_SHOWN_HASH = 8


@dataclass(frozen=True, slots=True)
class ComputedBySql:
    """Values of one SQL expression. `inputs` are the columns that it reads, as its planner finds them.

    `on_load`: rows that are loaded or changed get their values at once. `kept_identity` is the identity where the text
    does not give it: an input was renamed, which keeps the values, or converted, which does not.
    """

    sql: str
    inputs: tuple[str, ...] = field(default=(), compare=False)
    on_load: bool = False
    kept_identity: str = field(default="", compare=False)

    @property
    def version(self) -> str:
        """The version that people see: the beginning of a hash of the expression."""
        return _digest("sql", canonical_expression(self.sql))[:_SHOWN_HASH]

    @property
    def identity(self) -> str:
        """The name of this version of the definition."""
        return self.kept_identity or f"{self.version}-{_digest('sql', canonical_expression(self.sql))[:_HASH]}"


@dataclass(frozen=True, slots=True)
class ComputedByUdf:
    """Values of a Python function, whose arguments are the columns `inputs` in order.

    `udf` is `package.module:function` of the project, which only jobs import, or the name of a function that is
    packaged below the root; `function` is then the hash of the package, else empty. `output` names one of the columns
    that a function with several outputs makes. `on_load` and `kept_identity` are as in `ComputedBySql`.
    """

    udf: str
    function: str
    inputs: tuple[str, ...]
    version: str
    output: str = ""
    on_load: bool = False
    kept_identity: str = field(default="", compare=False)

    @property
    def identity(self) -> str:
        """The name of this version of the definition."""
        digest = _digest("udf", self.udf, self.version, self.output, *self.inputs)[:_HASH]
        return self.kept_identity or f"{self.version}-{digest}"

    def is_same_call(self, other: ComputedByUdf) -> bool:
        """Returns whether one call of the function makes the values of both columns."""
        own = (self.udf, self.function, self.version, self.inputs)
        return own == (other.udf, other.function, other.version, other.inputs)


Computed = ComputedBySql | ComputedByUdf


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def version_of(identity: str) -> str:
    """Returns the version that people see of an identity."""
    return identity.rpartition("-")[0]


def converted(computed: Computed, what: str) -> Computed:
    """Returns the definition after an input's values became others: `what` says how. Its identity is another one, of
    the same version."""
    identity = f"{computed.version}-{_digest(computed.identity, what)[:_HASH]}"
    return replace(computed, kept_identity=identity)


def with_renamed_inputs(computed: Computed, renames: Mapping[str, str]) -> Computed:
    """Returns the definition, with its identity, after columns got new names: `renames` has them by the old ones."""
    if not any(name in renames for name in computed.inputs):
        return computed
    inputs = tuple(renames.get(name, name) for name in computed.inputs)
    if isinstance(computed, ComputedByUdf):
        return replace(computed, inputs=inputs, kept_identity=computed.identity)
    sql = rename_in_expression(computed.sql, renames)
    return replace(computed, sql=sql, inputs=inputs, kept_identity=computed.identity)


def succeeding(before: Computed | None, after: Computed) -> Computed:
    """Returns the definition that replaces another: with its identity where both compute the same values."""
    same: bool
    match before, after:
        case ComputedBySql(), ComputedBySql():
            same = canonical_expression(before.sql) == canonical_expression(after.sql)
        case ComputedByUdf(), ComputedByUdf():
            same = _call(before) == _call(after)
        case _:
            same = False
    return replace(after, kept_identity=before.identity) if same and before is not None else after


def _call(computed: ComputedByUdf) -> tuple[object, ...]:
    return computed.udf, computed.version, computed.output, computed.inputs


def is_stale(before: Computed | None, after: Computed | None) -> bool:
    """Returns whether values that `before` made are not those of `after`."""
    return before is not None and after is not None and before.identity != after.identity


def readers_of(computed: Mapping[str, Computed], names: Iterable[str]) -> list[str]:
    """Returns the computed columns that read one of the columns, themselves or by other computed columns."""
    found: list[str] = []
    reached = set(names)
    while more := [
        name for name, each in computed.items() if name not in reached and any(i in reached for i in each.inputs)
    ]:
        found += more
        reached.update(more)
    return found


def definitions_after(computed: Mapping[str, Computed], changed: str, what: str) -> dict[str, Computed]:
    """Returns the definitions that become others when values of the column `changed` do: those of all that read it."""
    return {name: converted(computed[name], what) for name in readers_of(computed, [changed])}


def describe_computed(computed: Computed | None) -> str:
    """Returns the definition in one line: `distance * 2`, `features.flights:speed(distance, air_time) version 2`."""
    match computed:
        case None:
            return "none"
        case ComputedBySql(sql=sql):
            text = sql
        case ComputedByUdf(udf=udf, inputs=inputs, version=version, output=output):
            text = f"{udf}({', '.join(inputs)}){f'.{output}' if output else ''} version {version}"
        case _:
            assert_never(computed)
    return text + (" on load" if computed.on_load else "")


def computed_to_json(computed: Computed) -> dict[str, Any]:
    """Returns the definition as JSON, for `computed_from_json`; without an identity that was kept."""
    form: dict[str, Any]
    match computed:
        case ComputedBySql(sql=sql, inputs=inputs):
            form = {"sql": sql, "inputs": [*inputs]}
        case ComputedByUdf(udf=udf, function=function, inputs=inputs, version=version, output=output):
            form = {"udf": udf, "function": function, "inputs": [*inputs], "version": version, "output": output}
        case _:
            assert_never(computed)
    form["on_load"] = computed.on_load
    return {name: value for name, value in form.items() if value or name in ("sql", "inputs")}


def computed_document(computed: Computed) -> dict[str, Any]:
    """Returns the definition as a spec has it: without the inputs of SQL, which the text shows."""
    form = computed_to_json(computed)
    if isinstance(computed, ComputedBySql):
        del form["inputs"]
    return form


def computed_note(computed: Computed | None) -> str:
    """Returns the text of a definition in a field's metadata; empty for none."""
    if computed is None:
        return ""
    form = computed_to_json(computed)
    if computed.kept_identity:
        form["identity"] = computed.kept_identity
    return json.dumps(form, ensure_ascii=False)


def computed_from_note(text: bytes | str) -> Computed | None:
    """Returns the definition of a field's metadata; None for a text that is not one, which deployer did not write."""
    try:
        form = json.loads(text)
    except ValueError:
        return None
    return computed_from_json(form) if isinstance(form, dict) else None


def computed_from_json(form: Mapping[str, Any]) -> Computed | None:
    """Returns the definition that `computed_to_json` gave; None where it is not one."""
    sql, udf, inputs = form.get("sql"), form.get("udf"), form.get("inputs", [])
    texts = {name: form.get(name, "") for name in ("function", "version", "output", "identity")}
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(each, str) for each in (*inputs, *texts.values())):
        return None
    on_load = form.get("on_load") is True
    if isinstance(sql, str) and sql and udf is None:
        return ComputedBySql(sql, tuple(inputs), on_load, texts["identity"])
    if isinstance(udf, str) and udf and sql is None and texts["version"]:
        function, version, output = texts["function"], texts["version"], texts["output"]
        return ComputedByUdf(udf, function, tuple(inputs), version, output, on_load, texts["identity"])
    return None


def computation_order(inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the computed columns, each after those that it reads, without those of a cycle and what reads them.

    `inputs` are the columns that each computed column reads, by its name.
    """
    order: list[str] = []
    waiting = dict(inputs)
    while ready := [name for name, read in waiting.items() if not any(each in waiting for each in read)]:
        order += ready
        for name in ready:
            del waiting[name]
    return order
