"""The files that the architecture tests look at."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def tracked(*patterns: str) -> tuple[Path, ...]:
    """Answer the repository's files that fit, generated ones left out; also those not yet added."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = [ROOT / line for line in listed.splitlines() if "/migrations/0" not in line]
    return tuple(path for path in found if path.is_file())
