"""``python -m agents.toolchain``: fetch runc and CRIU into a prefix, or say why not."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from agents.toolchain.fetch import fetch
from agents.toolchain.mirror import UnableError
from agents.toolchain.programs import version


def main() -> None:
    """Always succeeds: a node without these tools still runs jobs, and says what it cannot do."""
    default = Path(os.environ.get("TIDEPOOL_HOME", ".tidepool"), "node")
    parser = argparse.ArgumentParser(prog="python -m agents.toolchain", description=__doc__)
    parser.add_argument("--prefix", type=Path, default=default)
    prefix = parser.parse_args().prefix.resolve()
    try:
        toolchain = fetch(prefix, print)
    except UnableError as reason:
        print(f"Jobs will not be movable on this machine: {reason}")
        return
    for program in filter(None, (toolchain.runc, toolchain.criu)):
        print(f"{program.name} {'.'.join(map(str, version(program)))} at {program}")


if __name__ == "__main__":
    main()
