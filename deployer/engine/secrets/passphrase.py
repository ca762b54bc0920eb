"""Keys by passphrase, byte for byte as the Pulumi CLI makes them.

The key is PBKDF2-HMAC-SHA256 of the passphrase (1,000,000 rounds) over an 8-byte salt. The stack's `encryptionsalt` is
`v1:SALT:` followed by the word "pulumi" encrypted with it, which detects a wrong passphrase.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from deployer.engine.secrets.crypter import KEY_BYTES, Crypter, WrongKey
from deployer.errors import Corrupt, InvalidInput, Refused
from deployer.platform.text import masking

VARIABLE, FILE_VARIABLE = "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"
NEW_VARIABLE = "DEPLOYER_NEW_PASSPHRASE"  #: the new passphrase for `stack change-secrets-provider`
EMPTY_VARIABLE = "DEPLOYER_ALLOW_EMPTY_PASSPHRASE"  #: 1: secrets may be stored that everyone can decrypt
_ROUNDS = 1_000_000
_PROOF = "pulumi"


@lru_cache(maxsize=16)
def _key(phrase: str, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", phrase.encode(), salt, _ROUNDS, KEY_BYTES)


def open_salt(salt: str) -> Crypter:
    """Returns the crypter of a stack's `encryptionsalt`, by the passphrase of the environment. Raises Refused for a
    wrong passphrase."""
    for phrase in _phrases():
        if (found := crypter_of(phrase, salt)) is not None:
            return found
    raise Refused(
        "the passphrase is not the one of this stack",
        where=VARIABLE,
        remedy="set it to the passphrase that the stack was made with",
    )


def crypter_of(phrase: str, salt: str) -> Crypter | None:
    """Returns the crypter of a salt with this passphrase; None for a wrong one. Raises Corrupt for text that is not a
    salt."""
    version, _, rest = salt.partition(":")
    encoded, _, proof = rest.partition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        raw = b""
    if version != "v1" or not proof or not raw:
        raise Corrupt("`encryptionsalt` is not in the form `v1:salt:proof`", remedy="restore Pulumi.STACK.yaml")
    crypter = Crypter(_key(phrase, raw))
    try:
        return crypter if crypter.decrypt(proof) == _PROOF else None
    except WrongKey:
        return None


def new_salt(phrase: str) -> tuple[str, Crypter]:
    """Returns a salt for a stack that has none, and its crypter."""
    raw = os.urandom(8)
    crypter = Crypter(_key(phrase, raw))
    return f"v1:{base64.b64encode(raw).decode()}:{crypter.encrypt(_PROOF)}", crypter


def passphrase() -> str:
    """Returns the passphrase of the environment. Raises Refused where none is set."""
    phrase = os.environ.get(VARIABLE)
    if phrase is None and (file := os.environ.get(FILE_VARIABLE)):
        try:
            phrase = Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InvalidInput(
                f"cannot read the passphrase: {error.strerror}",
                where=file,
                remedy="correct the path or its permissions",
            ) from None
    if phrase is None:
        raise Refused(
            "the stack has secrets and no passphrase is set",
            where=VARIABLE,
            remedy=f"set it, or name a file in {FILE_VARIABLE}",
        )
    masking.current().add(phrase, "the passphrase of the stack")
    return phrase


def refuse_empty(phrase: str, variable: str = VARIABLE) -> None:
    """Raises Refused for an empty passphrase, with which everyone can decrypt the stored values, unless it is allowed.

    A pipeline gives an empty text for a secret that does not exist.
    """
    if phrase.strip() or os.environ.get(EMPTY_VARIABLE) == "1":
        return
    raise Refused(
        f"{variable} is empty, so anyone could decrypt the secret",
        where=variable,
        remedy="set it to a passphrase (in a pipeline, see that the secret exists there); for a stack whose secrets "
        f"were stored with an empty one, run `deployer stack change-secrets-provider`; {EMPTY_VARIABLE}=1 allows it",
    )


def _phrases() -> Iterator[str]:
    """Yields the passphrase, and the new one while a stack's passphrase is changed: an interrupted change leaves values
    of both."""
    yield passphrase()
    if (new := os.environ.get(NEW_VARIABLE)) is not None:
        yield new
