"""On how many devices a job's replicas can run."""

from __future__ import annotations

from portal.models import Job


def sizes_of(job: Job) -> list[int]:
    """Numbers of devices from the job's lower bound to its full size, largest first.

    Every device carries the same number of replicas, so that all ranks are equally fast.
    """
    fewest = job.fewest_devices or job.devices
    groups = (number for number in range(job.replicas, 0, -1) if job.replicas % number == 0)
    return [
        number * job.gpus_per_replica
        for number in groups
        if number * job.gpus_per_replica >= min(fewest, job.devices)
    ]
