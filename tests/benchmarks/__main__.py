"""``python -m tests.benchmarks [NAME ...]``: run the benchmarks, JSON on every line."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> int:
    known = sorted(path.stem for path in FOLDER.glob("*.py") if runs(path))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(known)}; all unless named")
    failed = [name for name in parser.parse_args().names or known if not run(name)]
    if failed:
        print(f"Without a result: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def runs(path: Path) -> bool:
    """Whether a module is a benchmark by itself."""
    return path.stem != "__main__" and '__name__ == "__main__"' in path.read_text()


def run(name: str) -> bool:
    """Run one benchmark; one that fails stops no other."""
    print(f"# {name}", file=sys.stderr, flush=True)
    words = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{name}", "--json"]
    return subprocess.run(words, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
