"""A Lance directory namespace: a folder whose `__manifest` dataset has a row for each table. Lance's clients read it.

Lance's own implementation makes and removes entries. It has no call that changes an entry in place, so this module
merges such a change into the dataset, as the format describes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from deployer.datasets.dataset import latest_version
from deployer.datasets.storage.options import storage_options
from deployer.errors import InvalidInput, NotFound
from deployer.platform.system.retry import Backoff
from deployer.services.kinds.metasync.entry import Publication, plain_place, relative_to, uri_of
from deployer.services.kinds.metasync.targets.namespaces import found_entry, namespace_wanted, new_properties
from deployer.services.kinds.metasync.targets.target import Catalog, Found, Parts, Place, TargetFailed

if TYPE_CHECKING:
    from lance.namespace import DirectoryNamespace

MANIFEST = "__manifest"
SEPARATOR = "$"  #: separates the parts of an id in the manifest; names do not contain it
PATIENCE = 60.0  # seconds
_BACKOFF = Backoff(first=0.04, longest=2.0)
T = TypeVar("T")


class DirectoryTarget:
    """An implementation of `target.Target`. The declared `root` is the namespace's folder or URI, above all its tables.

    The databases of tables are namespaces. Versions are not published: a reader opens the newest version.
    """

    def __init__(self, declared: Mapping[str, Any], lake: str) -> None:
        self._root = plain_place(str(declared.get("root") or lake))
        self.title = f"directory {self._root}"
        self.catalog: Catalog = ("directory", uri_of(self._root))

    def place(self, database: str, name: str) -> Place:
        return database, name

    def wanted(self, publication: Publication) -> Parts:
        self._relative(publication)
        return namespace_wanted(publication, publication.location, with_version=False)

    def find(self, place: Place) -> Found | None:
        from lance_namespace import DescribeTableRequest, NamespaceNotFoundError, TableNotFoundError

        try:
            entry = self._call(lambda: self._namespace().describe_table(DescribeTableRequest(id=list(place))))
        except (TableNotFoundError, NamespaceNotFoundError):
            return None
        return found_entry(uri_of(entry.location or ""), entry.properties or {})

    def put(self, place: Place, publication: Publication, found: Found | None) -> None:
        relative = self._relative(publication)
        if found is None:
            self._register(place, relative)
        before = relative if found is None else relative_to(found.location, self._root)
        properties = new_properties(self.wanted(publication), found)
        self._call(lambda: self._merge(place, before or "", relative, properties))

    def remove(self, place: Place, found: Found) -> None:
        from lance_namespace import DeregisterTableRequest, TableNotFoundError

        with suppress(TableNotFoundError):  # removed by another process, or by a call of this one with a lost answer
            self._call(lambda: self._namespace().deregister_table(DeregisterTableRequest(id=list(place))))

    def _register(self, place: Place, location: str) -> None:
        from lance_namespace import (
            CreateNamespaceRequest,
            NamespaceAlreadyExistsError,
            RegisterTableRequest,
            TableAlreadyExistsError,
        )

        with suppress(NamespaceAlreadyExistsError):
            self._call(lambda: self._namespace().create_namespace(CreateNamespaceRequest(id=[place[0]])))
        request = RegisterTableRequest(id=list(place), location=location)
        with suppress(TableAlreadyExistsError):  # made by a repeated call; `_merge` checks the location of the entry
            self._call(lambda: self._namespace().register_table(request))

    def _relative(self, publication: Publication) -> str:
        """Returns the table's folder relative to the namespace. Raises InvalidInput where it is not below the
        namespace."""
        relative = relative_to(publication.location, self._root)
        if relative is None:
            raise InvalidInput(
                f"a directory namespace opens only tables below its folder, and this one is at {publication.location}",
                remedy="leave `root` out, which is the lake's own root then, or name a folder above it",
            )
        return relative

    def _merge(self, place: Place, before: str, location: str, properties: Mapping[str, str]) -> None:
        """Changes the entry with the location `before`. Raises TargetFailed where the entry no longer has it."""
        import lance

        uri = f"{self._root}/{MANIFEST}"
        dataset = lance.dataset(uri, storage_options=storage_options(uri))
        row = {
            "object_id": SEPARATOR.join(place),
            "object_type": "table",
            "location": location,
            "metadata": json.dumps(dict(properties)),
        }
        unchanged = f"target.location = {_literal(before)}"
        merge = dataset.merge_insert("object_id").when_matched_update_all(unchanged)
        done = merge.execute(pa.Table.from_pylist([row], schema=dataset.schema))
        if done["num_updated_rows"] != 1:
            raise TargetFailed("another program changed the entry at the same time", remedy="run METASYNC again")

    def _namespace(self) -> DirectoryNamespace:
        from lance.namespace import DirectoryNamespace

        options = {f"storage.{name}": value for name, value in (storage_options(self._root) or {}).items()}
        return DirectoryNamespace(root=self._root, **options)

    def _call(self, call: Callable[[], T]) -> T:
        """Makes a call and returns its result.

        Repeats the call while others commit to the manifest, since each of Lance's commits rewrites it. Raises
        TargetFailed, and the errors of the namespace that callers handle.
        """
        from lance_namespace import (
            NamespaceAlreadyExistsError,
            NamespaceNotFoundError,
            TableAlreadyExistsError,
            TableNotFoundError,
        )

        reported = (NamespaceAlreadyExistsError, NamespaceNotFoundError, TableAlreadyExistsError, TableNotFoundError)
        give_up, number = time.monotonic() + PATIENCE, 0
        while True:
            before = self._version()
            try:
                return call()
            except (*reported, TargetFailed):
                raise
            except Exception as failure:  # Lance has no error class for such failures
                if self._version() == before or time.monotonic() >= give_up:
                    first = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
                    what, remedy = f"the namespace could not be used: {first}", "check that its folder can be written"
                    raise TargetFailed(what, remedy=remedy) from failure
            number += 1
            _BACKOFF.wait(number)

    def _version(self) -> int:
        """Returns the newest version of the manifest; 0 where the manifest does not exist."""
        try:
            return latest_version(f"{self._root}/{MANIFEST}")
        except (NotFound, OSError):
            return 0


def _literal(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
