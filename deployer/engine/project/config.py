"""A stack's configuration: `Pulumi.STACK.yaml` over the project's defaults, under the overrides of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.engine.project.project import full_key, text_of
from deployer.engine.secrets.keepers import Keeper, as_config, keeper_of_config
from deployer.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from deployer.engine.project.project import StackRef
    from deployer.engine.secrets.encryption import Secrets, StackKeys


@dataclass(frozen=True)
class StackConfig:
    """A stack's configuration.

    `values` are texts by full key (`aws:region`); objects are JSON. `secret_keys` are the keys of secrets. `sealed`:
    secrets were not decrypted, and each has a placeholder.
    """

    values: Mapping[str, str]
    secret_keys: frozenset[str] = frozenset()
    sealed: bool = False

    @property
    def hidden(self) -> frozenset[str]:
        """The keys whose values are unknown."""
        return self.secret_keys if self.sealed else frozenset()

    def of_package(self, package: str) -> dict[str, tuple[str, bool]]:
        """Configuration of a provider package: short key to (text, is it secret)."""
        from deployer.engine.values.values import UNKNOWN  # it loads protobuf, which most commands do not need

        prefix = f"{package}:"
        return {
            key.removeprefix(prefix): (UNKNOWN if key in self.hidden else value, key in self.secret_keys)
            for key, value in self.values.items()
            if key.startswith(prefix)
        }


def read_keys(stack: StackRef) -> StackKeys:
    """Returns the settings of the key of the stack's secrets in `Pulumi.STACK.yaml`. Raises Refused for settings that
    only the Pulumi CLI supports."""
    from deployer.engine.secrets.encryption import StackKeys

    provider, keeper = keeper_of_config(_read(stack), stack.config_file)
    return StackKeys(provider, keeper, lambda made: write_keeper(stack, made))


def write_keeper(stack: StackRef, keeper: Keeper) -> None:
    """Writes the key's settings at the top, as the CLI does, and leaves the rest of the file unchanged."""
    file = stack.config_file
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    file.write_text(with_keeper(stack, text, keeper), encoding="utf-8")


def with_keeper(stack: StackRef, text: str, keeper: Keeper) -> str:
    """Returns the text of `Pulumi.STACK.yaml` with the key's settings."""
    there = _read(stack)
    settings = {name: value for name, value in as_config(keeper).items() if str(there.get(name) or "") != value}
    rest = [line for line in text.splitlines(keepends=True) if line.partition(":")[0] not in settings]
    head = [f"{name}: {value}\n" for name, value in settings.items() if value]
    return "".join((*head, *rest))


def secure_values(stack: StackRef) -> list[str]:
    """Returns the ciphertexts of the stack's configuration."""
    return list(_secure(_read(stack).get("config")))


def _secure(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value.keys() == {"secure"} and isinstance(value["secure"], str):
            yield value["secure"]
        else:
            for item in value.values():
                yield from _secure(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secure(item)


def read_config(stack: StackRef, secrets: Secrets, overrides: Mapping[str, str] | None) -> StackConfig:
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
        plain, is_secret = _decrypted(value, secrets, name)
        values[name] = text_of(plain)
        if is_secret:
            secret_keys.add(name)
    for key, text in (overrides or {}).items():
        name = full_key(key, project.name)
        values[name] = text
        secret_keys.discard(name)
    return StackConfig(values, frozenset(secret_keys), secrets.sealed)


def _decrypted(value: Any, secrets: Secrets, name: str) -> tuple[Any, bool]:
    if isinstance(value, dict):
        if value.keys() == {"secure"} and isinstance(value["secure"], str):
            return secrets.decrypt_config(value["secure"], name), True
        items = {key: _decrypted(item, secrets, name) for key, item in value.items()}
        return {key: item for key, (item, _) in items.items()}, any(flag for _, flag in items.values())
    if isinstance(value, list):
        parts = [_decrypted(item, secrets, name) for item in value]
        return [item for item, _ in parts], any(flag for _, flag in parts)
    return value, False


def _read(stack: StackRef) -> dict[str, Any]:
    from deployer.engine.project.project import load_yaml

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
