"""Where the traces that others published are, and how a figure is printed."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

from tests.architecture.sources import ROOT


def traces() -> Path:
    """The folder of the traces: ``TIDEPOOL_TRACES``, or ``../shared/traces`` beside the tree."""
    folder = Path(os.environ.get("TIDEPOOL_TRACES", ROOT.parent / "shared" / "traces"))
    if not folder.is_dir():
        raise SystemExit(f"{folder} is no folder: set TIDEPOOL_TRACES to where the traces are")
    return folder


def peak_mb() -> float:
    """Most memory this process has held, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def figure(**values: object) -> None:
    """Print one figure as a JSON line."""
    print(json.dumps(values), flush=True)
