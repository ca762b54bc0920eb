"""Secrets by passphrase, byte for byte as the Pulumi CLI keeps them.

The key is PBKDF2-HMAC-SHA256 of the passphrase (1,000,000 rounds) over an 8-byte salt; values are AES-256-GCM,
written `v1:NONCE:CIPHERTEXT` in base64. The stack's `encryptionsalt` is `v1:SALT:` followed by the word "pulumi"
encrypted so, which is how a wrong passphrase is noticed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from deployer.engine.values import SECRET, SIG
from deployer.errors import Corrupt, InvalidInput, Refused

_ROUNDS = 1_000_000
_PROOF = "pulumi"


class Crypter:
    """Encrypts and decrypts with one key. Equal plain texts keep the ciphertext they had, so a state stays as it is."""

    def __init__(self, key: bytes, salt: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aes = AESGCM(key)
        self._known: dict[str, str] = {}
        self.salt = salt

    def encrypt(self, plain: str) -> str:
        if plain in self._known:
            return self._known[plain]
        nonce = os.urandom(12)
        cipher = self._aes.encrypt(nonce, plain.encode(), None)
        text = f"v1:{base64.b64encode(nonce).decode()}:{base64.b64encode(cipher).decode()}"
        self._known[plain] = text
        return text

    def decrypt(self, text: str) -> str:
        from cryptography.exceptions import InvalidTag

        parts = text.split(":")
        if len(parts) != 3 or parts[0] != "v1":
            raise Corrupt("a stored secret is not in the form `v1:nonce:ciphertext`", remedy="restore the state's .bak")
        try:
            nonce, cipher = base64.b64decode(parts[1]), base64.b64decode(parts[2])
            plain = self._aes.decrypt(nonce, cipher, None).decode()
        except (InvalidTag, ValueError):
            raise Refused(
                "a stored secret cannot be decrypted with this passphrase",
                remedy="set PULUMI_CONFIG_PASSPHRASE to the passphrase of the stack",
            ) from None
        self._known.setdefault(plain, text)
        return plain


@lru_cache(maxsize=16)
def _key(phrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", phrase.encode(), salt, _ROUNDS, 32)


def open_crypter(phrase: str, state: str) -> Crypter:
    """The crypter of a stack's salt; refuses a wrong passphrase."""
    version, _, rest = state.partition(":")
    salt, _, proof = rest.partition(":")
    if version != "v1" or not proof:
        raise Corrupt("`encryptionsalt` is not in the form `v1:salt:proof`", remedy="restore Pulumi.STACK.yaml")
    crypter = Crypter(_key(phrase, base64.b64decode(salt)), state)
    try:
        right = crypter.decrypt(proof) == _PROOF
    except Refused:
        right = False
    if not right:
        raise Refused(
            "the passphrase is not the one of this stack",
            where="PULUMI_CONFIG_PASSPHRASE",
            remedy="set it to the passphrase that the stack was made with",
        )
    return crypter


def new_crypter(phrase: str) -> Crypter:
    salt = os.urandom(8)
    crypter = Crypter(_key(phrase, salt), "")
    crypter.salt = f"v1:{base64.b64encode(salt).decode()}:{crypter.encrypt(_PROOF)}"
    return crypter


class Passphrase:
    """A stack's secrets. The passphrase is asked for only when there is something to hide or to reveal.

    `configured` is the salt of `Pulumi.STACK.yaml`, `recorded` the one of the checkpoint. `save` keeps a salt that
    had to be made.
    """

    def __init__(self, configured: str | None, recorded: str | None, save: Callable[[str], None]) -> None:
        self._configured, self._recorded, self._save = configured, recorded, save
        self._crypters: dict[str, Crypter] = {}

    @property
    def salt(self) -> str | None:
        """The salt that goes into the checkpoint; None while nothing was ever secret."""
        return self._configured or self._recorded

    def require(self) -> None:
        """Makes sure that secrets can be kept, before there is one to lose; makes the salt when there is none."""
        self.encrypt(None)

    def decrypt_config(self, text: str) -> str:
        if self._configured is None:
            raise InvalidInput(
                "the configuration has a `secure:` value but no `encryptionsalt`",
                remedy="restore `encryptionsalt` in Pulumi.STACK.yaml",
            )
        return self._crypter(self._configured).decrypt(text)

    def decrypt(self, ciphertext: str) -> Any:
        # the two differ when the stack's passphrase was changed; a journal is already written with the new one
        salts = dict.fromkeys(salt for salt in (self._recorded, self._configured) if salt is not None)
        if not salts:
            raise Corrupt("the state has secrets but no salt", remedy="restore Pulumi.STACK.yaml or the state's .bak")
        *others, last = salts
        for salt in others:
            with contextlib.suppress(Refused):
                return json.loads(self._crypter(salt).decrypt(ciphertext))
        return json.loads(self._crypter(last).decrypt(ciphertext))

    def encrypt(self, value: Any) -> str:
        salt = self.salt
        if salt is None:
            crypter = new_crypter(_passphrase())
            salt = self._configured = crypter.salt
            self._crypters[salt] = crypter
            self._save(salt)
        return self._crypter(salt).encrypt(json.dumps(value, separators=(",", ":")))

    def reveal(self, value: Any) -> Any:
        """A stored property value with its secrets decrypted."""
        if isinstance(value, dict):
            if value.get(SIG) == SECRET:
                hidden = json.loads(value["plaintext"]) if "plaintext" in value else self.decrypt(value["ciphertext"])
                return {SIG: SECRET, "value": self.reveal(hidden)}
            return {key: self.reveal(item) for key, item in value.items()}
        return [self.reveal(item) for item in value] if isinstance(value, list) else value

    def hide(self, value: Any) -> Any:
        """A property value in its stored form, secrets encrypted."""
        if isinstance(value, dict):
            if value.get(SIG) == SECRET:
                return {SIG: SECRET, "ciphertext": self.encrypt(_plain(value.get("value")))}
            return {key: self.hide(item) for key, item in value.items()}
        return [self.hide(item) for item in value] if isinstance(value, list) else value

    def _crypter(self, salt: str) -> Crypter:
        if salt not in self._crypters:
            self._crypters[salt] = open_crypter(_passphrase(), salt)
        return self._crypters[salt]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIG) == SECRET:
            return _plain(value.get("value"))
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _passphrase() -> str:
    if (phrase := os.environ.get("PULUMI_CONFIG_PASSPHRASE")) is not None:
        return phrase
    if file := os.environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InvalidInput(
                f"cannot read the passphrase: {error.strerror}",
                where=file,
                remedy="correct the path or its permissions",
            ) from None
    raise Refused(
        "the stack has secrets and no passphrase is set",
        where="PULUMI_CONFIG_PASSPHRASE",
        remedy="set it, or name a file in PULUMI_CONFIG_PASSPHRASE_FILE",
    )
