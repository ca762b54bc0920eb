"""Addresses of REST catalogs, the hosts to which a process may send, and the variables that may hold a token.

Specs and state name a server and a variable. But they do not decide whether the process that has the token sends it to
the server. The environment of the process decides, by `DEPLOYER_TARGET_HOSTS`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from deployer.errors import InvalidInput

#: the prefix of the names of variables that may hold a token; targets cannot read other variables
TOKEN_PREFIX = "DEPLOYER_TOKEN_"  # noqa: S105 -- a name
TOKEN_PATTERN = f"^{TOKEN_PREFIX}[A-Za-z0-9_]{{1,100}}$"
#: the environment variable with the hosts to which the process may publish
HOSTS_VARIABLE = "DEPLOYER_TARGET_HOSTS"

_URI = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?(/[!-~]*)?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")  #: a last label of a host that URL parsers read as part of an IPv4 address
_IN_PATH = re.compile(r"[\\@?#]")
#: addresses of clouds' metadata services that are not link-local: AWS over IPv6, Alibaba, Oracle, Azure, Google
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd00:ec2::23", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd20:ce::254"),
    )
)
#: names of metadata services, which resolve on machines of the clouds
_METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
_COMPATIBLE = ipaddress.IPv6Network("::/96")  #: IPv4-compatible addresses (RFC 4291)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  #: RFC 6052
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")  #: RFC 8215
_REMEDY = "write https://HOST or https://HOST:PORT/PATH, without credentials and query"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a REST catalog. `host` is in lower case: a DNS name, or an IP address without brackets."""

    scheme: str
    host: str
    port: int | None = None

    @property
    def address(self) -> Address | None:
        """The host as an IP address; None where the host is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def is_loopback(self) -> bool:
        """Returns whether the host is this machine: `localhost` or a loopback address. Does not ask DNS."""
        address = self.address
        return self.host == "localhost" if address is None else is_this_machine(address)

    @property
    def place(self) -> str:
        """The host with its port, if any: `catalog.example.com`, `catalog.example.com:8080`, `[::1]:2333`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def server_of(uri: str) -> Server:
    """Returns the server that a target's `uri` names. Raises InvalidInput for an address that is not a safe target.

    Parsers disagree about unusual addresses: user information, backslashes, IPv4 addresses as one number, names that
    are not ASCII. So all these forms are refused.
    """
    found = _URI.fullmatch(uri)
    if found is None or _IN_PATH.search(found[4] or ""):
        raise InvalidInput("the address is not a plain URL of a server", remedy=_REMEDY)
    scheme, host, port = found[1].lower(), found[2].lower(), int(found[3]) if found[3] else None
    if port is not None and not 1 <= port <= 65_535:
        raise InvalidInput(f"the port {port} does not exist", remedy="use 1 to 65535")
    server = Server(scheme, _host(host), port)
    address = server.address
    by_name = "the metadata service of a cloud" if server.host in _METADATA_NAMES else ""
    if why := by_name if address is None else refused_address(address):
        raise InvalidInput(f"{server.host} is {why}", remedy="name the catalog's server")
    if scheme == "http" and not server.is_loopback:
        raise InvalidInput(
            "http:// is not encrypted, so others on the network can read what is sent",
            remedy="write https://; http:// is for localhost only",
        )
    return server


def _host(host: str) -> str:
    """Returns a host in the canonical form, in which hosts are compared. Raises InvalidInput for an unusual form."""
    if host.startswith("["):
        try:
            return _plain(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            raise InvalidInput(f"{host} is not an IPv6 address", remedy=_REMEDY) from None
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise InvalidInput(
                f"the host {host} is an unusual form of an IP address", remedy="write it as in 192.0.2.1, or a name"
            ) from None
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise InvalidInput(
            f"the host {host} is not a plain DNS name",
            remedy="write it as in catalog.example.com: no dot at the end, other scripts in their xn-- form",
        )
    return host


def is_this_machine(address: Address) -> bool:
    """Returns whether an address is this machine."""
    return _unmapped(address).is_loopback


def refused_address(address: Address) -> str:
    """Returns the reason why an address is never used, whatever host has it; empty for an address that may be used.

    Link-local addresses and the metadata services of clouds give out credentials, so they are refused. Private
    addresses are allowed, because catalogs of companies use them.
    """
    found: list[Address] = [address, *_embedded(address)]
    if any(each in _METADATA or each.is_link_local for each in found):
        return "a link-local address, or the metadata service of a cloud"
    own = _unmapped(address)
    if own.is_unspecified or any(each.is_multicast for each in found):
        return "not the address of one server"
    return ""


def _unmapped(address: Address) -> Address:
    """Returns the IPv4 address to which the system maps an IPv6 address, else the address itself."""
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


def _plain(address: ipaddress.IPv6Address) -> str:
    """Returns the address in groups of hexadecimal digits. Python 3.13 and later write addresses with an embedded IPv4
    address in another form."""
    if address.ipv4_mapped is None:
        return str(address)
    number = int(address.ipv4_mapped)
    return f"::ffff:{number >> 16:x}:{number & 0xFFFF:x}"


def _embedded(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """Yields the IPv4 addresses to which a network may translate an IPv6 address, by the forms of the standards."""
    if not isinstance(address, ipaddress.IPv6Address):
        return
    yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
    number = int(address)
    if address in _COMPATIBLE or address in _NAT64:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:  # the prefix may have 48, 56, 64 or 96 bits, and bits 64 to 71 are unused (RFC 6052)
        bits = (number >> 64 & 0xFFFF) << 56 | number & (1 << 56) - 1
        yield from (ipaddress.IPv4Address(bits >> behind & 0xFFFFFFFF) for behind in (40, 32, 24, 0))


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """One entry of a list of hosts: `HOST`, or `*.DOMAIN` for any name below the domain, and optionally `:PORT`.

    An entry that ends with `=VARIABLE` allows the host only for the token of that variable.
    """

    host: str
    port: int | None = None
    variable: str | None = None

    def matches(self, server: Server) -> bool:
        """Returns whether the entry names the server. An entry without a port covers every port."""
        if self.port is not None and self.port != (server.port or (443 if server.scheme == "https" else 80)):
            return False
        if self.host.startswith("*."):
            return server.address is None and server.host.endswith(self.host[1:])
        return server.host == self.host


def read_hosts(entries: Iterable[str], where: str) -> tuple[AllowedHost, ...]:
    """Returns the hosts of a list. Empty entries are skipped. Raises InvalidInput for an entry that is not a host;
    `where` is the place of the list in the error."""
    found = []
    for entry in (each.strip() for each in entries):
        if not entry:
            continue
        place, _, variable = entry.partition("=")
        if variable and not re.fullmatch(TOKEN_PATTERN, variable):
            raise InvalidInput(
                f"{variable} is not a variable for tokens", where=where, remedy=f"begin its name with {TOKEN_PREFIX}"
            )
        wildcard = place.startswith("*.")
        try:
            server = server_of(f"https://{place.removeprefix('*.')}")
        except InvalidInput as error:
            raise InvalidInput(
                f"the entry {entry!r} is not a host: {error.what}",
                where=where,
                remedy="write hosts such as catalog.example.com, *.example.com or catalog.example.com:8443",
            ) from None
        if "/" in place or (wildcard and server.address is not None):
            raise InvalidInput(f"the entry {entry!r} is not a host", where=where, remedy="write the host alone")
        found.append(AllowedHost(f"*.{server.host}" if wildcard else server.host, server.port, variable or None))
    return tuple(found)


def is_named(name: str, entry: str) -> bool:
    """Returns whether an entry of a policy names a catalog.

    A catalog is a host, with or without a port, or `KIND:PLACE`. An entry for a host has the form of a list of hosts.
    An entry for `KIND:PLACE` is the same text.
    """
    if entry == name:
        return True
    try:
        [allowed] = read_hosts([entry], "")
        return allowed.variable is None and allowed.matches(server_of(f"https://{name}"))
    except (InvalidInput, ValueError):
        return False


def require_allowed(server: Server, variable: str | None, hosts: str) -> None:
    """Raises InvalidInput unless a process may publish to the server with the token of `variable`.

    `hosts` is the process's `DEPLOYER_TARGET_HOSTS`. Servers on this machine need no permission.
    """
    allowed = read_hosts(hosts.split(","), HOSTS_VARIABLE)
    if any(each.matches(server) and each.variable in (None, variable or each.variable) for each in allowed):
        return
    if server.is_loopback:
        return
    token = f" with the token of {variable}" if variable else ""
    raise InvalidInput(
        f"nothing may be sent to {server.place}{token} from here",
        remedy=f"if that server is yours, add {server.place} to {HOSTS_VARIABLE} in the environment of the process "
        "that publishes",
    )


def require_token_variable(name: str) -> None:
    """Raises InvalidInput for a variable without the prefix of tokens, because it may hold a secret for another
    purpose."""
    if not re.fullmatch(TOKEN_PATTERN, name):
        raise InvalidInput(
            f"{name} is not a variable for tokens, so it is not read",
            remedy=f"keep the token in a variable whose name begins with {TOKEN_PREFIX}",
        )
