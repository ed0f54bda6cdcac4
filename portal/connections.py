"""Turn addresses of database and broker into what Django, Channels and Celery expect."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

SOCKET_PATH_LIMIT = 107

SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA cache_size=-16000",
    "PRAGMA mmap_size=134217728",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA journal_size_limit=67108864",
)


def database(url: str) -> dict[str, Any]:
    """Answer Django's description of ``sqlite:///path`` or ``postgres://user:password@host:port/name``.

    A query string becomes connection options of PostgreSQL, e.g. ``?sslmode=require``.
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "portal.sqlite",
            "NAME": unquote(parts.path)[1:] if parts.path != "/:memory:" else ":memory:",
            "CONN_MAX_AGE": 60,  # opening runs all these pragmas
            "OPTIONS": {
                # A deferred transaction that starts to write fails at once when another has
                # written since; an immediate one waits its turn.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": ";".join(SQLITE_PRAGMAS),
            },
        }
    if parts.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.lstrip("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or ""),
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "OPTIONS": dict(parse_qsl(parts.query)),
        }
    raise ImproperlyConfigured(
        f"TIDEPOOL_DATABASE_URL must begin with sqlite:/// or postgres://, not {parts.scheme!r}."
    )


def socket_path(home: Path) -> Path:
    """Answer where the embedded broker of this home listens.

    The kernel takes no socket path longer than 107 bytes; a deeper home has its socket in a folder
    of this user below the system's temporary one.
    """
    path = home / "run" / "valkey.sock"
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        return path
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    return Path(tempfile.gettempdir(), f"tidepool-{os.getuid()}-{name}", "valkey.sock")


def broker(url: str) -> str:
    """Answer Celery's name for a Redis address; a Unix socket has its own scheme there."""
    return url.replace("unix://", "redis+socket://", 1)


def channel_layer(url: str) -> dict[str, Any]:
    """Answer the channel layer at a Redis address, or one within this process for ``memory://``."""
    if url.startswith("memory://"):
        return {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    return {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [url], "prefix": "tidepool"},
    }


def cache(url: str) -> dict[str, Any]:
    """Answer the cache at a Redis address, or one within this process for ``memory://``."""
    if url.startswith("memory://"):
        return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    return {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url}


def secret_key(path: Path) -> str:
    """Answer the key kept in a file that only its owner may read, made at first use.

    Safe when several processes start at once: the first link stands, the others read it.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        try:
            path.hardlink_to(fresh)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text().strip()
