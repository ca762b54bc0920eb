"""The implementation of `Queries` by `deployer.views.query`, with the stored functions that queries call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from deployer.functions.model import UDF
from deployer.functions.packages.package import PackageInfo
from deployer.functions.packages.stored import function_info, load_function
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.views.definition import ViewDefinition
from deployer.views.query.model import (
    FunctionSignature,
    OnFailures,
    SourceChanges,
    SourceReader,
    SourceSchema,
    StoredView,
    ViewDelta,
    ViewQuery,
)
from deployer.views.query.parsing.memory import parse_again
from deployer.views.refresh.queries import Queries


@dataclass(frozen=True)
class StoredQueries:
    """The queries of the views of the instance at `root`. Only trusted functions run. `unsaved` has packages that are
    not stored below the root yet, by their hashes."""

    root: str
    trusted: TrustedFunctions
    unsaved: Mapping[str, PackageInfo] = field(default_factory=dict)

    def parse(self, definition: ViewDefinition, source_schema: Callable[[str], SourceSchema], where: str) -> ViewQuery:
        """Returns the parsed query. Reads only the descriptions of its functions' packages, and runs no function."""
        functions = {
            name: FunctionSignature.of_package(self.unsaved.get(package) or function_info(self.root, package)[0])
            for name, package in definition.functions.items()
        }
        return parse_again(definition.query, source_schema, functions, where)

    def build(
        self,
        definition: ViewDefinition,
        query: ViewQuery,
        reader: SourceReader,
        on_failures: OnFailures | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields all rows. Raises the errors of `deployer.views.query.build.build`, and Refused for a function that is
        not trusted."""
        from deployer.views.query.build import build

        return build(query, reader, self._functions(definition), on_failures)

    def delta(
        self,
        definition: ViewDefinition,
        query: ViewQuery,
        changes: SourceChanges,
        reader: SourceReader,
        view: StoredView,
        on_failures: OnFailures | None = None,
    ) -> ViewDelta:
        """Returns the changes of the view. Raises the errors of `deployer.views.query.delta.delta`, and Refused for a
        function that is not trusted."""
        from deployer.views.query.delta import delta

        return delta(query, changes, reader, view, self._functions(definition), on_failures)

    def _functions(self, definition: ViewDefinition) -> dict[str, UDF]:
        return {name: load_function(self.root, each, self.trusted) for name, each in definition.functions.items()}


def queries_of(root: str, trusted: TrustedFunctions, unsaved: Mapping[str, PackageInfo] | None = None) -> Queries:
    """Returns a `StoredQueries`, which parses and computes the queries of the views of the instance at `root`."""
    return StoredQueries(root, trusted, unsaved or {})
