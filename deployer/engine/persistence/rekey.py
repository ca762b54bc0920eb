"""Changes the key of a stack's secrets: to another passphrase, from a passphrase to KMS, and back."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from deployer.engine.persistence.backend import stack_files
from deployer.engine.persistence.locks import locked
from deployer.engine.persistence.store import StackStore
from deployer.engine.project.config import read_keys, secure_values, with_keeper
from deployer.engine.project.project import StackRef
from deployer.engine.secrets.encryption import Secrets, StackKeys
from deployer.engine.secrets.keepers import Keeper, new_keeper, open_keeper
from deployer.engine.secrets.passphrase import NEW_VARIABLE
from deployer.errors import InvalidInput
from deployer.platform.text import masking


def change_keeper(stack: StackRef, provider: str) -> Keeper:
    """Encrypts the stack's configuration and state again with a new key of `provider`; returns the new key's keeper.

    The former key is needed. A new passphrase is in `DEPLOYER_NEW_PASSPHRASE`. The state is written first, and the
    configuration last: the same call, with both passphrases, resumes an interrupted change.
    Raises Refused, and Conflict while another run holds the stack.
    """
    files, keys = stack_files(stack), read_keys(stack)
    with masking.scope(), locked(files):
        store = StackStore(files, keys)
        opened = store.open(fold=True)
        secure = secure_values(stack)
        before = open_keeper(keys.configured) if secure and keys.configured is not None else None
        if secure and before is None:
            raise InvalidInput(
                "the configuration has `secure:` values and no key",
                where=stack.config_file,
                remedy="restore `encryptionsalt` (or `encryptedkey`)",
            )
        keeper, crypter = new_keeper(provider, NEW_VARIABLE)
        text = stack.config_file.read_text(encoding="utf-8") if stack.config_file.is_file() else ""
        for ciphertext in secure:
            assert before is not None  # noqa: S101 -- else it was refused
            if ciphertext not in text:
                raise InvalidInput(
                    "a `secure:` value is folded over several lines, and cannot be replaced",
                    where=stack.config_file,
                    remedy="write it in one line",
                )
            text = text.replace(ciphertext, crypter.encrypt(before.decrypt(ciphertext)))
        text = with_keeper(stack, text, keeper)
        store.rekey(opened, Secrets(StackKeys(provider, keeper), None, crypters={keeper: crypter}))
        _replace(stack.config_file, text)
    return keeper


def _replace(file: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write(text)
        if file.exists():
            Path(name).chmod(file.stat().st_mode & 0o777)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
