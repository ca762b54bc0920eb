"""A stack's configuration: `Pulumi.STACK.yaml` over the project's defaults, under the overrides of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from deployer.engine.project import StackRef
    from deployer.engine.secrets import Passphrase


@dataclass(frozen=True)
class StackConfig:
    """`values` by full key (`aws:region`), all text; objects are JSON. `secret_keys` are those that hold a secret."""

    values: Mapping[str, str]
    secret_keys: frozenset[str] = frozenset()

    def of_package(self, package: str) -> dict[str, tuple[str, bool]]:
        """Configuration of a provider package: short key to (text, is it secret)."""
        prefix = f"{package}:"
        return {
            key.removeprefix(prefix): (value, key in self.secret_keys)
            for key, value in self.values.items()
            if key.startswith(prefix)
        }


def full_key(key: str, project: str) -> str:
    """`specs` → `PROJECT:specs`; `aws:config:region`, the older form, → `aws:region`."""
    parts = key.split(":")
    if len(parts) == 1:
        return f"{project}:{key}"
    return f"{parts[0]}:{parts[2]}" if len(parts) == 3 and parts[1] == "config" else key


def text_of(value: Any) -> str:
    """A YAML value as the text that programs and providers get."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else str(value)


def read_salt(stack: StackRef) -> str | None:
    """`encryptionsalt` of `Pulumi.STACK.yaml`; refuses a stack whose secrets are kept by anything but a passphrase."""
    doc = _read(stack)
    provider = str(doc.get("secretsprovider") or "")
    if doc.get("encryptedkey") or (provider and provider != "passphrase"):
        raise Refused(
            f"the stack's secrets are kept by {provider or 'a key service'}, and this engine knows passphrases only",
            where=stack.config_file,
            remedy="install the Pulumi CLI (`pulumi`); it is then used",
        )
    salt = doc.get("encryptionsalt")
    return str(salt) if salt else None


def write_salt(stack: StackRef, salt: str) -> None:
    """Adds `encryptionsalt`, where the CLI puts it, and leaves the rest of the file as it is."""
    file = stack.config_file
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    file.write_text(f"encryptionsalt: {salt}\n{text}", encoding="utf-8")


def read_config(stack: StackRef, passphrase: Passphrase, overrides: Mapping[str, str] | None) -> StackConfig:
    project = stack.project
    values = dict(project.config_defaults)
    secret_keys: set[str] = set()
    declared = _read(stack).get("config") or {}
    if not isinstance(declared, dict):
        raise InvalidInput(
            "`config` is not a mapping", where=stack.config_file, remedy="write `namespace:key: value` lines below it"
        )
    for key, value in declared.items():
        name = full_key(str(key), project.name)
        plain, is_secret = _decrypted(value, passphrase)
        values[name] = text_of(plain)
        if is_secret:
            secret_keys.add(name)
    for key, text in (overrides or {}).items():
        name = full_key(key, project.name)
        values[name] = text
        secret_keys.discard(name)
    return StackConfig(values, frozenset(secret_keys))


def _decrypted(value: Any, passphrase: Passphrase) -> tuple[Any, bool]:
    if isinstance(value, dict):
        if value.keys() == {"secure"} and isinstance(value["secure"], str):
            return passphrase.decrypt_config(value["secure"]), True
        items = {key: _decrypted(item, passphrase) for key, item in value.items()}
        return {key: item for key, (item, _) in items.items()}, any(flag for _, flag in items.values())
    if isinstance(value, list):
        parts = [_decrypted(item, passphrase) for item in value]
        return [item for item, _ in parts], any(flag for _, flag in parts)
    return value, False


def _read(stack: StackRef) -> dict[str, Any]:
    from deployer.engine.project import load_yaml

    if not stack.config_file.is_file():
        return {}
    doc, lines = load_yaml(stack.config_file)
    if doc.get("environment"):
        raise Refused(
            "`environment` (Pulumi ESC) needs the official Pulumi CLI",
            where=f"{stack.config_file}:{lines.get('environment', 1)}",
            remedy="install `pulumi`, or move the values into `config`",
        )
    return doc
