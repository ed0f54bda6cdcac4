"""A store, and a replica's two folders to put into it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agents.checkpoints import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    (folder / "core-1.img").write_bytes(b"core")
    (folder / "pages-1.img").write_bytes(os.urandom(300_000) + bytes(500_000))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "data").mkdir()
    (folder / "data" / "weights.bin").write_bytes(os.urandom(700_000))
    return folder
