"""A stack's secrets.

They are encrypted in its state and configuration, and decrypted by runs that change something. Previews decrypt
nothing: there a stored secret is *sealed*, `{SIG: SECRET, "ciphertext": …}`, as the state stores it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deployer.engine.secrets.crypter import Crypter, WrongKey
from deployer.engine.secrets.keepers import (
    PASSPHRASE,
    ByKms,
    ByPassphrase,
    Keeper,
    new_keeper,
    open_keeper,
    refuse_storing,
)
from deployer.engine.values.values import BLINDED, SECRET, SIG, contains_secret
from deployer.errors import Corrupt, InvalidInput, Refused
from deployer.platform.text import masking

#: the place of a value: the URN of its resource, then `inputs` or `outputs`, then the path to the value
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class StackKeys:
    """The key in a stack's configuration: its `provider`, and the key once it exists. `save` stores a new key."""

    provider: str = PASSPHRASE
    configured: Keeper | None = None
    save: Callable[[Keeper], None] = lambda _: None


class Secrets:
    """The secrets of a run.

    The key is read only when there is a value to encrypt or decrypt. `recorded` is the key of the checkpoint; it
    differs from the configured key after the stack's key was changed.
    """

    def __init__(
        self,
        keys: StackKeys,
        recorded: Keeper | None,
        *,
        sealed: bool = False,
        crypters: Mapping[Keeper, Crypter] | None = None,
    ) -> None:
        """`sealed`: nothing is decrypted. `crypters` belong to keys that are open already."""
        self._keys, self._configured, self._recorded = keys, keys.configured, recorded
        self.sealed = sealed
        self._given = frozenset(crypters or ())
        self._crypters: dict[Keeper, Crypter] = dict(crypters or {})
        self._kept: dict[tuple[Place, str], str] = {}  #: ciphertexts by place and plain text

    @property
    def keeper(self) -> Keeper | None:
        """The key to store in the checkpoint; None while the stack never had a secret."""
        return self._configured or self._recorded

    @property
    def is_moved(self) -> bool:
        """Returns whether secrets of the checkpoint have a different key than newly stored ones."""
        return None not in (self._configured, self._recorded) and self._configured != self._recorded

    @property
    def _is_new_provider(self) -> bool:
        """Returns whether the configuration names KMS, has no key of it yet, and the checkpoint has another kind."""
        by_passphrase = isinstance(self._recorded, ByPassphrase)
        return self._configured is None and self._keys.provider != PASSPHRASE and by_passphrase

    def require(self) -> None:
        """Checks that secrets can be stored, before a secret could be lost; makes the key when there is none."""
        self._storing()

    def decrypt_config(self, text: str, name: str) -> str:
        """Returns a `secure:` value of the configuration; a placeholder where nothing is decrypted."""
        if self.sealed:
            return BLINDED
        if self._configured is None:
            raise InvalidInput(
                "the configuration has a `secure:` value but no `encryptionsalt`",
                remedy="restore `encryptionsalt` (or `encryptedkey`) in Pulumi.STACK.yaml",
            )
        plain = self._crypter(self._configured).decrypt(text)
        masking.current().add(plain, f"the secret configuration {name}")
        return plain

    def encrypt(self, value: Any) -> str:
        """Encrypts a value. Raises Refused where the key is not available, or is known to everyone."""
        return self._storing().encrypt(json.dumps(value, separators=(",", ":")))

    def reveal(self, value: Any, place: Place) -> Any:
        """Returns a stored property value with its secrets decrypted; unchanged where nothing is decrypted."""
        return self._reveal(value, place) if contains_secret(value) else value

    def _reveal(self, value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            if value.get(SIG) == SECRET:
                return self._revealed(value, place)
            return {key: self._reveal(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._reveal(item, (*place, index)) for index, item in enumerate(value)]
        return value

    def _revealed(self, stored: dict[str, Any], place: Place) -> Any:
        ciphertext = stored.get("ciphertext")
        if "plaintext" in stored:
            hidden = _parsed(stored["plaintext"])
        elif not isinstance(ciphertext, str):
            raise Corrupt("a stored secret has no ciphertext", where=str(place[0]), remedy="restore the state's .bak")
        elif self.sealed:
            return {SIG: SECRET, "ciphertext": ciphertext}
        else:
            hidden = self._decrypted(ciphertext)
            if not self.is_moved:
                self._kept[place, _text(hidden)] = ciphertext
        revealed = self.reveal(hidden, place)
        remember(revealed, place)
        return {SIG: SECRET, "value": revealed}

    def hide(self, value: Any, place: Place) -> Any:
        """Returns a property value in its stored form. A secret that is unchanged at its place keeps its ciphertext. No
        other secret has this ciphertext, so equal secrets are not recognizable."""
        return self._hide(value, place) if contains_secret(value) else value

    def _hide(self, value: Any, place: Place) -> Any:
        if isinstance(value, dict):
            if value.get(SIG) == SECRET:
                return {SIG: SECRET, "ciphertext": self._hidden(value, place)}
            return {key: self._hide(item, (*place, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._hide(item, (*place, index)) for index, item in enumerate(value)]
        return value

    def _hidden(self, value: dict[str, Any], place: Place) -> str:
        if "value" not in value and "ciphertext" in value:
            return str(value["ciphertext"])  # it is sealed
        plain = _plain(value.get("value"))
        key = place, _text(plain)
        if key not in self._kept:
            self._kept[key] = self.encrypt(plain)
        return self._kept[key]

    def _decrypted(self, ciphertext: str) -> Any:
        # the two keys differ when the stack's key was changed; a journal is already written with the new one
        keepers = [each for each in dict.fromkeys((self._recorded, self._configured)) if each is not None]
        if not keepers:
            raise Corrupt("the state has secrets but no key", remedy="restore Pulumi.STACK.yaml or the state's .bak")
        refusal: Refused | None = None
        for keeper in keepers:
            try:
                return _parsed(self._crypter(keeper).decrypt(ciphertext))
            except Refused as error:
                # the error for an unavailable key is more useful than the one for a wrong key
                refusal = error if refusal is None or isinstance(refusal, WrongKey) else refusal
        assert refusal is not None  # noqa: S101 -- there was a keeper
        raise refusal

    def _storing(self) -> Crypter:
        keeper = self.keeper
        if keeper is None or self._is_new_provider:
            keeper, crypter = new_keeper(self._keys.provider)
            self._configured, self._crypters[keeper] = keeper, crypter
            self._kept.clear()  # the stored ciphertexts have the former key
            self._keys.save(keeper)
        if keeper not in self._given:
            self._refuse_unconfigured(keeper)
            refuse_storing(keeper)
        return self._crypter(keeper)

    def _refuse_unconfigured(self, keeper: Keeper) -> None:
        """Raises Refused for a key in KMS that only the state names: a writer of the state could name a key of their
        own, and read the secrets that are stored with it. A passphrase is checked by its salt."""
        if isinstance(keeper, ByKms) and self._configured is None:
            raise Refused(
                f"the state's secrets are kept by {keeper.url}, and the stack's configuration does not name that key",
                where="secretsprovider",
                remedy="if it is yours, restore `secretsprovider` and `encryptedkey` in Pulumi.STACK.yaml",
            )

    def _crypter(self, keeper: Keeper) -> Crypter:
        if self.sealed:
            raise AssertionError("a preview asks for no key")
        if keeper not in self._crypters:
            self._crypters[keeper] = open_keeper(keeper)
        return self._crypters[keeper]


def remember_all(value: Any, place: Place) -> None:
    """Remembers every secret in a value."""
    if isinstance(value, Mapping):
        if value.get(SIG) == SECRET:
            remember(value, place)
        else:
            for key, item in value.items():
                remember_all(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            remember_all(item, (*place, index))


def remember(value: Any, place: Place) -> None:
    """Masks the secret at a place in all later output and stored texts."""
    where = ".".join(map(str, place[2:]))
    urn = str(place[0]).rpartition("::")[2]
    masking.current().add(_plain(value), f"the secret {where} of {urn}" if where else f"a secret of {urn}")


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise Corrupt("a stored secret is not a value", remedy="restore the state's .bak") from None


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIG) == SECRET:
            return _plain(value.get("value"))
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
