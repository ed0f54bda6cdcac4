"""Secrets at rest: sealed with a key that follows from the portal's secret key, and opened again.

Old secret keys (``SECRET_KEY_FALLBACKS``) still open what they have sealed; ``manage.py reseal``
seals everything with the present one.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PURPOSE = b"tidepool: secrets of jobs"


class SealError(Exception):
    """Something sealed cannot be opened: the portal's secret key is another one by now."""


def seal(values: Mapping[str, str]) -> str:
    """Answer what may lie in the database; nothing for nothing."""
    if not values:
        return ""
    return _keys().encrypt(json.dumps(dict(values)).encode()).decode()


def unseal(sealed: str) -> dict[str, str]:
    """Answer what was sealed. Raises ``SealError``."""
    if not sealed:
        return {}
    try:
        opened = _keys().decrypt(sealed.encode())
    except InvalidToken:
        raise SealError(
            "The secrets were sealed with another secret key: put it into "
            "TIDEPOOL_OLD_SECRET_KEYS, or submit the job again."
        ) from None
    return dict(json.loads(opened))


def reseal(sealed: str) -> str:
    """Answer the same under the present key. Raises ``SealError``."""
    return seal(unseal(sealed))


def _keys() -> MultiFernet:
    return _derived((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@lru_cache(maxsize=4)
def _derived(secret_keys: Sequence[str]) -> MultiFernet:
    return MultiFernet([Fernet(_derive(key)) for key in secret_keys])


def _derive(secret_key: str) -> bytes:
    kdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=PURPOSE)
    return base64.urlsafe_b64encode(kdf.derive(secret_key.encode()))
