"""Encrypts and decrypts values as Pulumi does: AES-256-GCM, written `v1:NONCE:CIPHERTEXT` in base64."""

from __future__ import annotations

import base64
import os

from deployer.errors import Corrupt, Refused

KEY_BYTES = 32


class WrongKey(Refused):
    """A value was encrypted with another key, or was altered."""

    kind = "WrongKey"


class Crypter:
    """Encryption and decryption with one key. Each encrypted value gets its own nonce, so equal values have different
    ciphertexts."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aes = AESGCM(key)

    def encrypt(self, plain: str) -> str:
        nonce = os.urandom(12)
        cipher = self._aes.encrypt(nonce, plain.encode(), None)
        return f"v1:{base64.b64encode(nonce).decode()}:{base64.b64encode(cipher).decode()}"

    def decrypt(self, text: str) -> str:
        """Decrypts a value. Raises Corrupt for text that is not a ciphertext, WrongKey for a ciphertext of another
        key."""
        from cryptography.exceptions import InvalidTag

        parts = text.split(":")
        if len(parts) != 3 or parts[0] != "v1":
            raise Corrupt("a stored secret is not in the form `v1:nonce:ciphertext`", remedy="restore the state's .bak")
        try:
            nonce, cipher = (base64.b64decode(part, validate=True) for part in parts[1:])
            return self._aes.decrypt(nonce, cipher, None).decode()
        except (InvalidTag, ValueError):
            raise WrongKey(
                "a stored secret cannot be decrypted with the key of this stack",
                remedy="set PULUMI_CONFIG_PASSPHRASE to the passphrase of the stack, or restore `secretsprovider` and "
                "`encryptedkey` in Pulumi.STACK.yaml",
            ) from None
