"""Secret configuration in a preview, which decrypts nothing: programs get outputs that are secret and unknown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pulumi
from pulumi.output import UNKNOWN

_READERS = ("_get", "_get_bool", "_get_int", "_get_float", "_get_object")


@contextlib.contextmanager
def hidden_config(keys: Collection[str]) -> Iterator[None]:
    """Within the block, `get_secret`, `require_secret` and similar functions return an unknown output for these full
    keys.

    `get` and `require` return the placeholder that the configuration has for a secret.
    """
    if not keys:
        yield
        return
    before = {name: getattr(pulumi.Config, name) for name in _READERS}
    for name, reader in before.items():
        setattr(pulumi.Config, name, _hiding(reader, keys))
    try:
        yield
    finally:
        for name, reader in before.items():
            setattr(pulumi.Config, name, reader)


def _hiding(reader: Callable[..., Any], keys: Collection[str]) -> Callable[..., Any]:
    def read(config: pulumi.Config, key: str, use: Any = None, instead_of: Any = None) -> Any:
        # the SDK names the alternative when it is not read as a secret
        if use is None and config.full_key(key) in keys:
            return UNKNOWN
        return reader(config, key, use, instead_of)

    return read
