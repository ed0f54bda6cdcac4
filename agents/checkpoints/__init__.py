"""The chunk store: how a stored replica's memory and files go in, come out and are thrown away."""

from agents.checkpoints.collection import Collected, collect
from agents.checkpoints.dump import Stored, store_image, store_tree
from agents.checkpoints.errors import (
    ChangedError,
    CheckpointError,
    DamagedError,
    NotStoredError,
    StoreFullError,
    StoreUnreachableError,
)
from agents.checkpoints.intake import Intake, let_go, prepare
from agents.checkpoints.kept import Kept
from agents.checkpoints.leaning import NEAR, Base
from agents.checkpoints.manifest import Manifest
from agents.checkpoints.outputs import Download, StoredFile, list_files, open_file, zip_files
from agents.checkpoints.restore import Fetched, fetch_image, fetch_tree
from agents.checkpoints.store import Store, open_store

__all__ = [
    "NEAR",
    "Base",
    "ChangedError",
    "CheckpointError",
    "Collected",
    "DamagedError",
    "Download",
    "Fetched",
    "Intake",
    "Kept",
    "Manifest",
    "NotStoredError",
    "Store",
    "StoreFullError",
    "StoreUnreachableError",
    "Stored",
    "StoredFile",
    "collect",
    "fetch_image",
    "fetch_tree",
    "let_go",
    "list_files",
    "open_file",
    "open_store",
    "prepare",
    "store_image",
    "store_tree",
    "zip_files",
]
