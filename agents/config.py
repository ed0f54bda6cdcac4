"""Settings of an agent: from flags, else the environment, else what works on one machine."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from agents.devices.cores import every_core, parse_cores


class ConfigError(Exception):
    """A setting is missing or cannot be read; the sentence names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything an agent is told from outside."""

    portal: str
    """http or https URL of the portal."""
    token: str
    """The node's bearer token; never logged."""
    node: str
    state: Path
    store: str
    """fsspec URL or folder of the chunk store."""
    durable: bool = True
    """Whether a checkpoint in a folder counts as stored only once it is on disk."""
    prefix: Path
    """Where the private runc and CRIU lie, if they were fetched."""
    driver: str = "auto"
    devices: str = "auto"
    cores: tuple[int, ...] = ()
    underlay: str = "127.0.0.1"
    grace_s: float = 5.0
    on_stop: str = "leave"
    """``leave``: replicas run on when the agent is stopped; ``park``: they are stored and ended."""
    profile_window_s: float = 2.0
    """Seconds of each window in which a replica's pace is measured."""
    storage_bandwidth: float = 100e6
    """Bytes a second that this node reads data at; what less memory would cost is told from it."""
    cache_bytes: int = 4 << 30
    """How many bytes of a distant store's chunks, and of uploads, may stay on the node."""
    kept_bytes: int = 16 << 30
    """How many bytes of images may stay on the node for a quick restore."""
    output_bytes_per_s: int = 1 << 20
    log_level: str = "INFO"

    @property
    def link_url(self) -> str:
        """The WebSocket address of the portal's agent link."""
        parts = urlsplit(self.portal)
        scheme = "wss" if parts.scheme == "https" else "ws"
        return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/agents/link/"


FLAGS: tuple[tuple[str, str, str], ...] = (
    ("portal", "TIDEPOOL_PORTAL", "URL of the portal"),
    ("node", "TIDEPOOL_NODE", "name of this node"),
    ("token-file", "TIDEPOOL_NODE_TOKEN_FILE", "file that holds the node's token"),
    ("state", "TIDEPOOL_AGENT_STATE", "folder for this agent's state"),
    ("store", "TIDEPOOL_STORE", "chunk store: folder or fsspec URL"),
    ("prefix", "TIDEPOOL_NODE_PREFIX", "folder with the private runc and CRIU"),
    ("driver", "TIDEPOOL_DRIVER", "auto, container, process or fake"),
    ("devices", "TIDEPOOL_DEVICES", "auto, nvidia, cpu:N or fake:N:KIND"),
    ("cores", "TIDEPOOL_CORES", "cores that the cpu devices divide, e.g. 0-3"),
    ("underlay", "TIDEPOOL_UNDERLAY", "address that other nodes reach this node by"),
    ("grace", "TIDEPOOL_GRACE", "seconds between SIGTERM and SIGKILL"),
    ("durable", "TIDEPOOL_DURABLE", "yes: a checkpoint counts once it is on disk; no: sooner"),
    ("cache", "TIDEPOOL_CACHE", "GiB of a distant store's chunks that may stay on this node"),
    ("kept", "TIDEPOOL_KEPT", "GiB of memory images that may stay on this node; 0 for none"),
    ("on-stop", "TIDEPOOL_ON_STOP", "leave or park the replicas when the agent stops"),
    ("profile-window", "TIDEPOOL_PROFILE_WINDOW", "seconds of each measurement of a profile"),
    ("storage-bandwidth", "TIDEPOOL_STORAGE_BANDWIDTH", "bytes/s that data is read at here"),
    ("log-level", "TIDEPOOL_LOG_LEVEL", "DEBUG, INFO, WARNING or ERROR"),
)


def read_config(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Config:
    """Read the settings. Raises ``ConfigError`` with a sentence that names flag and variable."""
    parser = argparse.ArgumentParser(prog="python -m agents", description="Run this node's agent.")
    for flag, variable, meaning in FLAGS:
        parser.add_argument(f"--{flag}", default=environment.get(variable, ""), help=meaning)
    told = parser.parse_args(arguments)
    if not told.portal.startswith(("http://", "https://")):
        raise ConfigError("--portal (TIDEPOOL_PORTAL) must be the http or https URL of the portal.")
    state = Path(told.state or ".tidepool/agent").absolute()
    return Config(
        portal=told.portal.rstrip("/"),
        token=_token(told.token_file, environment),
        node=told.node or platform.node(),
        state=state,
        store=told.store or str(state / "store"),
        prefix=Path(told.prefix or state / "node").absolute(),
        driver=_one_of("driver", told.driver or "auto", "auto", "container", "process", "fake"),
        devices=told.devices or "auto",
        cores=_cores(told.cores),
        underlay=told.underlay or "127.0.0.1",
        grace_s=_number("grace", told.grace or "5"),
        durable=_one_of("durable", told.durable or "yes", "yes", "no") == "yes",
        cache_bytes=int(_number("cache", told.cache or "4") * (1 << 30)),
        kept_bytes=int(_number("kept", told.kept or "16") * (1 << 30)),
        on_stop=_one_of("on-stop", told.on_stop or "leave", "leave", "park"),
        profile_window_s=max(0.1, _number("profile-window", told.profile_window or "2")),
        storage_bandwidth=max(1.0, _number("storage-bandwidth", told.storage_bandwidth or "1e8")),
        log_level=_one_of(
            "log-level", (told.log_level or "INFO").upper(), "DEBUG", "INFO", "WARNING", "ERROR"
        ),
    )


def _token(file: str, environment: Mapping[str, str]) -> str:
    token = environment.get("TIDEPOOL_NODE_TOKEN", "")
    if not token and file:
        try:
            token = Path(file).read_text().strip()
        except OSError as error:
            raise ConfigError(f"The token file {file} cannot be read: {error.strerror}.") from error
    if not token:
        raise ConfigError("Give the node's token in TIDEPOOL_NODE_TOKEN or in a --token-file.")
    return token


def _one_of(flag: str, value: str, *choices: str) -> str:
    if value not in choices:
        raise ConfigError(f"--{flag} must be one of {', '.join(choices)}; it is {value!r}.")
    return value


def _cores(text: str) -> tuple[int, ...]:
    try:
        return parse_cores(text) if text else every_core()
    except ValueError as error:
        raise ConfigError(f"--cores (TIDEPOOL_CORES) is not a list of cores: {text!r}.") from error


def _number(flag: str, text: str) -> float:
    try:
        return max(0.0, float(text))
    except ValueError as error:
        raise ConfigError(f"--{flag} must be a number; it is {text!r}.") from error
