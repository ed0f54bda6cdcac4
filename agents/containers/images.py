"""What lies beside CRIU's images: the container's configuration, and each image's length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.checkpoints.leaning import PARENT_LINK
from agents.drivers.base import DriverError

SEAL = "container.json"


def seal(images: Path, config: Mapping[str, Any]) -> None:
    """Write down what was dumped; last, so that its presence says that all is there.

    The lengths of page files that were taken on their way stand in the manifest only.
    """
    files = sorted(path for path in images.iterdir() if path.is_file())
    lengths = {path.name: path.stat().st_size for path in files}
    (images / SEAL).write_text(json.dumps({"config": config, "lengths": lengths}))


def unseal(images: Path) -> dict[str, Any]:
    """The configuration that was dumped. Raises DriverError ``image-damaged`` if it is not whole.

    CRIU itself reads a truncated image for ever. In images that lean on others the maps and the
    pages are shorter than they were dumped.
    """
    leans = (images / PARENT_LINK).is_symlink()
    try:
        sealed = json.loads((images / SEAL).read_text())
        lengths, config = sealed["lengths"], dict(sealed["config"])
        damaged = [
            name
            for name, size in lengths.items()
            if (images / name).stat().st_size != size and not (leans and name.startswith("page"))
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DriverError("image-damaged", f"The checkpoint is not whole: {error}") from error
    if damaged:
        raise DriverError("image-damaged", f"The checkpoint is not whole: {', '.join(damaged)}")
    return config
