"""The environment of a replica's command: what the job says, over what every command needs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from agents.protocol import Desired

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def environment_of(
    desired: Desired, *, node: str, workspace: str, cpus: float, gpus: tuple[str, ...]
) -> dict[str, str]:
    """Build it; the job's own variables win, secrets win over those."""
    threads = str(max(1, int(cpus)))
    basics = {
        # The agent's own interpreter comes first, so that ``python train.py`` finds what was
        # installed with it.
        "PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}",
        "HOME": workspace,
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "CUDA_VISIBLE_DEVICES": ",".join(gpus),
        "TIDEPOOL_JOB": str(desired.job),
        "TIDEPOOL_NODE": node,
        "TIDEPOOL_DEVICES": ",".join(desired.devices),
        "RANK": str(desired.rank),
        "WORLD_SIZE": str(desired.world),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }
    if desired.network is not None:
        basics["GLOO_SOCKET_IFNAME"] = "eth0"
    launch = desired.launch
    if launch is None:
        return basics
    return {**basics, **launch.environment, **launch.secrets}
