"""A Lance REST namespace. The client is generated from its specification."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from deployer.errors import InvalidInput
from deployer.plan.render.escaping import plain
from deployer.services.kinds.metasync.entry import Publication, relative_to, uri_of
from deployer.services.kinds.metasync.targets.namespaces import found_entry, namespace_wanted, new_properties
from deployer.services.kinds.metasync.targets.target import Catalog, Found, Parts, Place, TargetFailed
from deployer.services.kinds.metasync.targets.token import read_token
from deployer.specs.values.target_server import HOSTS_VARIABLE, require_allowed, server_of

if TYPE_CHECKING:
    from lance_namespace_urllib3_client.api_client import ApiClient

SEPARATOR = "$"  #: separates the parts of an id in an address; names do not contain it
NOT_FOUND, CONFLICT = 404, 409  # status codes of HTTP
_MOST_REASON = 500  #: the most characters of a server's own reason in an error
T = TypeVar("T")


class _Answered(TargetFailed):
    """The error that the server answered a request with an error. `status` is the status code of HTTP."""

    kind = "TargetFailed"

    def __init__(self, status: int, what: str, *, remedy: str) -> None:
        super().__init__(what, remedy=remedy)
        self.status = status


class RestTarget:
    """An implementation of `target.Target`. The databases of tables are namespaces.

    A bearer token is read from the environment when it is needed; it is never stored or shown. Raises InvalidInput for
    a server that the environment does not allow, and for a variable that is not for tokens.
    """

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self._uri = str(declared["uri"]).rstrip("/")
        self._root: str | None = declared.get("root")
        self._variable: str | None = declared.get("token_variable")
        self._server = server_of(self._uri)
        require_allowed(self._server, self._variable, os.environ.get(HOSTS_VARIABLE, ""))
        self.title = f"rest {self._uri}"
        self.catalog: Catalog = ("rest", self._uri)

    def place(self, database: str, name: str) -> Place:
        return database, name

    def wanted(self, publication: Publication) -> Parts:
        return namespace_wanted(publication, publication.location, with_version=True)

    def find(self, place: Place) -> Found | None:
        from lance_namespace import DescribeTableRequest
        from lance_namespace_urllib3_client.api.table_api import TableApi

        try:
            entry = self._call(
                lambda: TableApi(self._client).describe_table(
                    SEPARATOR.join(place), DescribeTableRequest(), delimiter=SEPARATOR
                )
            )
        except _Answered as answer:
            if answer.status == NOT_FOUND:
                return None
            raise
        return found_entry(self._absolute(entry.location or ""), entry.properties)

    def put(self, place: Place, publication: Publication, found: Found | None) -> None:
        parts = self.wanted(publication)
        location, properties = self._location_of(publication), new_properties(parts, found)
        try:
            self._register(place, location, properties, "Overwrite" if found is not None else "Create")
        except _Answered as answer:
            if answer.status == NOT_FOUND:
                self._create_namespace(place[0])
            elif answer.status == CONFLICT and found is not None:
                self.remove(place, found)  # the server cannot overwrite an entry
            else:
                raise
            self._register(place, location, properties, "Create")

    def remove(self, place: Place, found: Found) -> None:
        from lance_namespace import DeregisterTableRequest
        from lance_namespace_urllib3_client.api.table_api import TableApi

        try:
            self._call(
                lambda: TableApi(self._client).deregister_table(
                    SEPARATOR.join(place), DeregisterTableRequest(), delimiter=SEPARATOR
                )
            )
        except _Answered as answer:
            if answer.status != NOT_FOUND:  # a missing entry was removed by another process
                raise

    def _register(self, place: Place, location: str, properties: Mapping[str, str], mode: str) -> None:
        from lance_namespace import RegisterTableRequest
        from lance_namespace_urllib3_client.api.table_api import TableApi

        request = RegisterTableRequest(location=location, mode=mode, properties=dict(properties))
        self._call(lambda: TableApi(self._client).register_table(SEPARATOR.join(place), request, delimiter=SEPARATOR))

    def _create_namespace(self, name: str) -> None:
        from lance_namespace import CreateNamespaceRequest
        from lance_namespace_urllib3_client.api.namespace_api import NamespaceApi

        try:
            self._call(
                lambda: NamespaceApi(self._client).create_namespace(name, CreateNamespaceRequest(), delimiter=SEPARATOR)
            )
        except _Answered as answer:
            if answer.status != CONFLICT:  # a conflict means that the namespace exists
                raise

    def _location_of(self, publication: Publication) -> str:
        """Returns the location in the form of the server: relative to the declared `root`, or absolute without one."""
        if self._root is None:
            return publication.location
        relative = relative_to(publication.location, self._root)
        if relative is None:
            raise InvalidInput(
                f"the table is at {publication.location}, which is not below {self._root}",
                remedy="set the target's `root` to the folder from which the server counts locations, or leave it out",
            )
        return relative

    def _absolute(self, location: str) -> str:
        if self._root is not None and "://" not in location and not location.startswith("/"):
            return uri_of(f"{self._root.rstrip('/')}/{location}")
        return uri_of(location)

    @cached_property
    def _client(self) -> ApiClient:
        from lance_namespace_urllib3_client.api_client import ApiClient
        from lance_namespace_urllib3_client.configuration import Configuration

        from deployer.services.kinds.metasync.targets.checked_http import CheckedHttp

        token = None if self._variable is None else read_token(self._variable)
        client = ApiClient(Configuration(host=self._uri, access_token=token))
        client.rest_client = CheckedHttp(self._server)
        return client

    def _call(self, call: Callable[[], T]) -> T:
        """Makes a call and returns its result. Raises TargetFailed, whose message has no part of the request, since
        that contains the token."""
        from lance_namespace_urllib3_client.exceptions import ApiException, OpenApiException
        from urllib3.exceptions import HTTPError

        try:
            return call()
        except ApiException as failure:
            status = int(failure.status or 0)
            reason = plain(str(getattr(failure.data, "error", None) or failure.reason or ""))[:_MOST_REASON]
            remedy = "check the token" if status in (401, 403) else "check the server's log"
            raise _Answered(status, f"the server answered {status}: {reason}", remedy=remedy) from None
        except HTTPError as failure:
            cause = getattr(failure, "reason", None)
            what = f"the server did not answer: {type(cause if isinstance(cause, Exception) else failure).__name__}"
            raise TargetFailed(what, remedy="check the address and the network, then run again") from None
        except (OpenApiException, ValueError) as failure:
            what = f"the server's answer is not one of a Lance namespace: {type(failure).__name__}"
            raise TargetFailed(what, remedy="check the target's `uri`") from None
