"""The keepers of the key of a stack's secrets, in the forms of `Pulumi.STACK.yaml` and of checkpoints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.engine.secrets.aws_kms import SCHEME, data_key, new_data_key, parse_kms
from deployer.engine.secrets.crypter import Crypter
from deployer.engine.secrets.passphrase import VARIABLE, new_salt, open_salt, passphrase, refuse_empty
from deployer.errors import Corrupt, Refused

PASSPHRASE = "passphrase"  # noqa: S105 -- a kind of provider
_BY_PASSPHRASE = ("", PASSPHRASE, "default")  #: in `secretsprovider`
_CLOUD = "cloud"  #: the type in a checkpoint of a key that a key service has encrypted


@dataclass(frozen=True, slots=True)
class ByPassphrase:
    """A key that is made of a passphrase and this salt (`encryptionsalt`)."""

    salt: str


@dataclass(frozen=True, slots=True)
class ByKms:
    """A data key that KMS has encrypted: the URL of KMS's key (`secretsprovider`), and the encrypted data key in base64
    (`encryptedkey`)."""

    url: str
    encrypted_key: str


Keeper = ByPassphrase | ByKms


def keeper_of_config(document: Mapping[str, Any], where: object) -> tuple[str, Keeper | None]:
    """Returns the `secretsprovider` of a stack's configuration, and the keeper once it exists.

    Raises Refused for providers that only the Pulumi CLI supports.
    """
    provider = str(document.get("secretsprovider") or "")
    if provider.startswith(f"{SCHEME}:"):
        parse_kms(provider)
        encrypted = document.get("encryptedkey")
        return provider, ByKms(provider, str(encrypted)) if encrypted else None
    if provider not in _BY_PASSPHRASE or document.get("encryptedkey"):
        raise Refused(
            f"the stack's secrets are kept by {provider.partition(':')[0] or 'a key service'}, and this engine knows "
            "passphrases and AWS KMS (`awskms://…`)",
            where=where,
            remedy="install the Pulumi CLI (`pulumi`); it is then used",
        )
    salt = document.get("encryptionsalt")
    return PASSPHRASE, ByPassphrase(str(salt)) if salt else None


def keeper_of_deployment(deployment: Mapping[str, Any] | None) -> Keeper | None:
    """Returns the keeper of the key that encrypted a deployment's secrets; None where it has no secret. Raises Refused
    and Corrupt."""
    provider = (deployment or {}).get("secrets_providers") or {}
    if not isinstance(provider, Mapping):
        raise Corrupt("the state's secrets provider cannot be read", where="secrets_providers", remedy="restore it")
    kind, state = provider.get("type") or "", provider.get("state")
    known: Mapping[str, Any] = state if isinstance(state, Mapping) else {}
    if kind == _CLOUD and str(known.get("url", "")).startswith(f"{SCHEME}:"):
        parse_kms(str(known["url"]))
        return ByKms(str(known["url"]), str(known.get("encryptedkey") or ""))
    if kind not in {"", PASSPHRASE}:
        which = str(known.get("url") or kind).partition(":")[0]
        raise Refused(
            f"the state's secrets are kept by the provider {which!r}, and this engine knows passphrases and AWS KMS",
            where="secrets_providers",
            remedy="install the Pulumi CLI (`pulumi`); it is then used",
        )
    return ByPassphrase(str(known["salt"])) if known.get("salt") else None


def as_state(keeper: Keeper) -> dict[str, Any]:
    """Returns a checkpoint's `secrets_providers`."""
    match keeper:
        case ByPassphrase(salt=salt):
            return {"type": PASSPHRASE, "state": {"salt": salt}}
        case ByKms(url=url, encrypted_key=key):
            return {"type": _CLOUD, "state": {"url": url, "encryptedkey": key}}


def as_config(keeper: Keeper) -> dict[str, str]:
    """Returns the keys of `Pulumi.STACK.yaml`; keys that are to be removed are empty."""
    match keeper:
        case ByPassphrase(salt=salt):
            return {"secretsprovider": "", "encryptedkey": "", "encryptionsalt": salt}
        case ByKms(url=url, encrypted_key=key):
            return {"secretsprovider": url, "encryptedkey": key, "encryptionsalt": ""}


def open_keeper(keeper: Keeper) -> Crypter:
    """Returns the crypter of an existing key. Raises Refused where the key is not available."""
    match keeper:
        case ByPassphrase(salt=salt):
            return open_salt(salt)
        case ByKms(url=url, encrypted_key=key):
            return Crypter(data_key(url, key))


def new_keeper(provider: str, variable: str = VARIABLE) -> tuple[Keeper, Crypter]:
    """Returns a new key of a stack; a passphrase is in the environment's `variable`.

    Raises Refused for an empty passphrase, for a provider that only the Pulumi CLI supports, or where the key is not
    available.
    """
    if provider.startswith(f"{SCHEME}:"):
        key, encrypted = new_data_key(provider)
        return ByKms(provider, encrypted), Crypter(key)
    if provider not in _BY_PASSPHRASE:
        raise Refused(
            f"this engine does not keep secrets by {provider.partition(':')[0]}",
            remedy="use passphrase or awskms://…, or install the Pulumi CLI (`pulumi`) for others",
        )
    phrase = passphrase() if variable == VARIABLE else os.environ.get(variable, "")
    refuse_empty(phrase, variable)
    salt, crypter = new_salt(phrase)
    return ByPassphrase(salt), crypter


def refuse_storing(keeper: Keeper) -> None:
    """Raises Refused where everyone could decrypt values that are stored with this key."""
    if isinstance(keeper, ByPassphrase):
        refuse_empty(passphrase())
