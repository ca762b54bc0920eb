"""The definition of a computed column: SQL or a Python function that makes its values from columns of the same table.

The definition is JSON in the metadata of the column's field in Lance, under `deployer:computed`. So renames, restores
and copies of the table keep it. `identity` names a version of the definition. Each data file records the identity that
computed its values, and a comparison shows whether the values are stale.
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
    """A definition by one SQL expression. `inputs` are the columns that the expression reads, as its planner finds
    them.

    `on_load`: rows that are loaded or changed get their values at once. `kept_identity` is the identity where it does
    not follow from the expression, because an input was renamed (the values stay the same) or converted (the values
    change).
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
    """A definition by a Python function, whose arguments are the columns `inputs`, in order.

    `udf` is `package.module:function` of the project, which only jobs import, or the name of a function that is
    packaged below the root. `function` is the hash of the package, and empty for a function of the project. `output`
    names one of the outputs of a function that has several. `on_load` and `kept_identity` are as in `ComputedBySql`.
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
    """Returns the part of an identity that is shown to people as the version."""
    return identity.rpartition("-")[0]


def converted(computed: Computed, what: str) -> Computed:
    """Returns the definition after the values of an input changed; `what` says how they changed. The result has the
    same version and another identity."""
    identity = f"{computed.version}-{_digest(computed.identity, what)[:_HASH]}"
    return replace(computed, kept_identity=identity)


def with_renamed_inputs(computed: Computed, renames: Mapping[str, str]) -> Computed:
    """Returns the definition after columns were renamed; its identity stays the same. `renames` has the new names by
    the old ones."""
    if not any(name in renames for name in computed.inputs):
        return computed
    inputs = tuple(renames.get(name, name) for name in computed.inputs)
    if isinstance(computed, ComputedByUdf):
        return replace(computed, inputs=inputs, kept_identity=computed.identity)
    sql = rename_in_expression(computed.sql, renames)
    return replace(computed, sql=sql, inputs=inputs, kept_identity=computed.identity)


def succeeding(before: Computed | None, after: Computed) -> Computed:
    """Returns the definition `after`, which replaces `before`. It gets the identity of `before` where both compute the
    same values."""
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
    """Returns whether values that `before` computed may differ from the values of `after`. False where either is
    None."""
    return before is not None and after is not None and before.identity != after.identity


def readers_of(computed: Mapping[str, Computed], names: Iterable[str]) -> list[str]:
    """Returns the computed columns that read one of the columns `names`, directly or through other computed columns."""
    found: list[str] = []
    reached = set(names)
    while more := [
        name for name, each in computed.items() if name not in reached and any(i in reached for i in each.inputs)
    ]:
        found += more
        reached.update(more)
    return found


def definitions_after(computed: Mapping[str, Computed], changed: str, what: str) -> dict[str, Computed]:
    """Returns the new definitions, by column, of all computed columns that read the column `changed`, after its values
    changed. `what` says how they changed."""
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
    """Returns the definition as JSON, for `computed_from_json`. Omits `kept_identity`."""
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
    """Returns the definition in the form of specs. Omits the inputs of SQL, because the expression has them."""
    form = computed_to_json(computed)
    if isinstance(computed, ComputedBySql):
        del form["inputs"]
    return form


def computed_note(computed: Computed | None) -> str:
    """Returns the text of a definition for a field's metadata; empty for None."""
    if computed is None:
        return ""
    form = computed_to_json(computed)
    if computed.kept_identity:
        form["identity"] = computed.kept_identity
    return json.dumps(form, ensure_ascii=False)


def computed_from_note(text: bytes | str) -> Computed | None:
    """Returns the definition from the text in a field's metadata; None for a text that deployer did not write."""
    try:
        form = json.loads(text)
    except ValueError:
        return None
    return computed_from_json(form) if isinstance(form, dict) else None


def computed_from_json(form: Mapping[str, Any]) -> Computed | None:
    """Returns the definition from the form that `computed_to_json` returns; None for an invalid form."""
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
    """Returns the computed columns in an order in which each follows the computed columns that it reads.

    Omits columns of a cycle, and the columns that read them. `inputs` are the columns that each computed column reads,
    by its name.
    """
    order: list[str] = []
    waiting = dict(inputs)
    while ready := [name for name, read in waiting.items() if not any(each in waiting for each in read)]:
        order += ready
        for name in ready:
            del waiting[name]
    return order
