"""``python -m tests.benchmarks [NAME ...]``: run the benchmarks, a JSON object a line."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from types import ModuleType

import tests.benchmarks


def main() -> int:
    known = [module.name for module in pkgutil.iter_modules(tests.benchmarks.__path__)]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(known)}; all unless named")
    failed = 0
    for name in parser.parse_args().names or known:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        if hasattr(module, "measure"):
            failed += run(name, module)
    return 1 if failed else 0


def run(name: str, module: ModuleType) -> int:
    """Print one benchmark's figures; answer 1 when it failed, which stops no other."""
    try:
        print(json.dumps({"benchmark": name, **module.measure()}), flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
