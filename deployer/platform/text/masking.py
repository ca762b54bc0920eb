"""Masks known secrets in text: secrets that a run decrypted or received, and credentials of the environment.

A process has one set of known secrets during a command or an engine's run (`scope`). A secret is found in its plain
form (line by line if it has several), and in the forms of base64, URLs, JSON, Python and HTML.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus, unquote

MASK = "[secret]"
_SHORTEST = 4  #: least characters; a shorter secret would mask parts of every text
_LONG_NUMBER = 12  #: least digits; shorter numbers are ports, counts and dates
_ANYWHERE = 8  #: least characters of a secret that is found inside longer words too
#: Variables whose secrets people choose.
_CHOSEN = ("PULUMI_CONFIG_PASSPHRASE", "DEPLOYER_NEW_PASSPHRASE")
#: Variables with issued secrets. An access key's id, a role's name and a region are not secrets.
_ISSUED = (
    "PULUMI_ACCESS_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
)
_PREFIX = "DEPLOYER_TOKEN_"
_IN_URL = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")


class KnownSecrets:
    """The known secrets, each with its name for errors.

    Safe for threads. A text that is one of several in a secret, such as the host in a secret object, is masked too.
    Checks can ignore it, because it need not be secret by itself.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        self._parts: set[str] = set()  #: texts that are parts of secrets
        self._forms: list[str] = []  #: the longest first: a secret may be a part of another one
        self._lock = threading.Lock()
        for variable, value in environment.items():
            if variable in _CHOSEN or variable.startswith(_PREFIX):
                self.add(value, f"the environment variable {variable}")
            elif variable in _ISSUED:
                self.add_issued(value, f"the environment variable {variable}")
            elif "://" in value:  # the password of a proxy, a package index or an endpoint
                for found in _IN_URL.finditer(value):
                    self.add(unquote(found[1]), f"the environment variable {variable}")

    def add(self, value: Any, name: str) -> None:
        """Remembers a secret: a text, or every text in a list or mapping. Numbers are not masked: JSON would become
        invalid, and counts would be masked."""
        match value:
            case Mapping():
                for item in value.values():
                    self._add(item, name, is_part=True)
            case list() | tuple():
                for item in value:
                    self._add(item, name, is_part=True)
            case _:
                self._add(value, name, is_part=False)

    def add_issued(self, secret: str | None, name: str) -> None:
        """Remembers a secret that a service issues. Issued secrets are long: a short one is ignored, such as `test` for
        AWS's simulators."""
        if secret is not None and len(secret) >= _ANYWHERE:
            self.add(secret, name)

    def _add(self, secret: Any, name: str, *, is_part: bool) -> None:
        if isinstance(secret, Mapping | list | tuple):
            self.add(secret, name)
            return
        if not isinstance(secret, str):
            return
        text = secret.strip()
        if len(text) < (_LONG_NUMBER if text.isdecimal() else _SHORTEST):
            return
        with self._lock:
            if not is_part:
                self._parts.discard(secret)
            if secret in self._names:
                return
            self._names[secret] = name
            if is_part:
                self._parts.add(secret)
            # a new list, because other threads may be reading the old one
            self._forms = sorted({*self._forms, *_forms(secret)}, key=lambda form: (-len(form), form))

    def masked(self, text: str) -> str:
        """Returns the text with `[secret]` for every known secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK) if len(form) >= _ANYWHERE else _word(form).sub(MASK, text)
        return text

    def name_in(self, text: str, *, parts: bool = True) -> str:
        """Returns the name of a secret that the text contains in plain form; empty when it contains none. A short
        secret counts only if it is the whole text. Without `parts`, texts that are parts of secrets do not count."""
        for secret, name in list(self._names.items()):
            if not parts and secret in self._parts:
                continue
            if secret == text or (len(secret) >= _ANYWHERE and any(form in text for form in _forms(secret))):
                return name
        return ""

    def name_in_any(self, texts: Sequence[str]) -> str:
        """Returns the name of a secret that one of the texts contains in plain form; empty when none does. Fast for
        many texts."""
        for text in texts:
            if text in self._names:
                return self._names[text]
        joined = "\0".join(texts)
        if any(form in joined for form in self._forms if len(form) >= _ANYWHERE):
            return next((name for text in texts if (name := self.name_in(text))), "")
        return ""


def _word(form: str) -> re.Pattern[str]:
    """Returns a pattern that matches a short secret only as a whole word."""
    return re.compile(rf"(?<![^\W_]){re.escape(form)}(?![^\W_])")


@lru_cache(maxsize=4096)
def _forms(secret: str) -> frozenset[str]:
    """Returns the ways in which a secret may be written."""
    import html  # takes a millisecond, and many commands have no secret

    stripped = secret.strip()
    whole = {secret, stripped}
    lines = {line.strip() for line in secret.splitlines()} if "\n" in stripped or "\r" in stripped else set()
    whole |= {line for line in lines if len(line) >= _ANYWHERE and not line.startswith("-----")}
    found = set(whole)
    for text in whole:
        found |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1]}
        found |= {html.escape(text), text.replace("'", "''"), text.replace("\\", "\\\\")}
        for quoted in (quote(text, safe=""), quote(text), quote_plus(text)):
            found |= {quoted, re.sub("%[0-9A-F]{2}", lambda part: part[0].lower(), quoted)}
        if len(text) >= _ANYWHERE:
            found |= set(_encoded(text.encode("utf-8", "surrogatepass")))
    return frozenset(form for form in found if len(form) >= _SHORTEST)


def _encoded(data: bytes) -> Iterator[str]:
    """Returns base64 and hexadecimal forms of the bytes, including those with other bytes before and after them."""
    yield data.hex()
    yield base64.b64encode(data).decode()
    yield base64.urlsafe_b64encode(data).decode()
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data).decode()
        inside = text[(0, 2, 3)[before] : len(text) if (before + len(data)) % 3 == 0 else -4 + (before + len(data)) % 3]
        if len(inside) >= _ANYWHERE:
            yield inside
            yield inside.replace("+", "-").replace("/", "_")


_current: KnownSecrets | None = None


def current() -> KnownSecrets:
    """Returns the known secrets; outside of a `scope`, those of the environment."""
    return _current if _current is not None else KnownSecrets(os.environ)


@contextlib.contextmanager
def scope() -> Iterator[KnownSecrets]:
    """Within the block, secrets are remembered. A scope inside of another one shares its secrets."""
    global _current
    if _current is not None:
        yield _current
        return
    _current = KnownSecrets(os.environ)
    try:
        yield _current
    finally:
        _current = None


def masked(text: str) -> str:
    """Returns the text with `[secret]` for every secret that is known now."""
    return current().masked(text)


def masked_values(document: Any) -> Any:
    """Returns a JSON document with every known secret in its texts masked; keys are unchanged."""
    known = current()

    def walk(value: Any) -> Any:
        match value:
            case str():
                return known.masked(value)
            case Mapping():
                return {key: walk(item) for key, item in value.items()}
            case list() | tuple():
                return [walk(item) for item in value]
            case _:
                return value

    return walk(document)
