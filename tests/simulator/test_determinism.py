"""The same seed gives the same bytes, whatever the hashes of strings are."""

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import ROOT

WORDS = [
    sys.executable, "-m", "scheduler.simulator", "synthetic:bursty,jobs=150,load=1.1,devices=32",
    "--fleet", "4x8", "--policy", "default", "--tiers", "premium=0.3,standard=0.3,basic=0.4",
    "--elastic", "0.5", "--noise", "0.5", "--seed", "7", "--decisions", "--quiet",
]  # fmt: skip


def played(folder: Path, hash_seed: str) -> dict[str, bytes]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    words = [*WORDS, "--out", str(folder)]
    subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_two_hash_seeds_write_the_same_files(tmp_path: Path):
    first, second = played(tmp_path / "a", "1"), played(tmp_path / "b", "2")
    assert {"report.html", "default/run.json", "default/jobs.csv", "default/decisions.csv"} == set(
        first
    )
    assert first == second
