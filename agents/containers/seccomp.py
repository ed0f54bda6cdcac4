"""The system calls that a container is refused."""

from __future__ import annotations

import errno
import platform
from typing import Any

ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}

ABSENT = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
"""Answered with ENOSYS, so that libraries take their older way.

CRIU cannot dump an io_uring; clone3 hides its flags behind a pointer, where no filter can look.
"""

# fmt: off
FORBIDDEN = (
    "acct", "add_key", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "create_module",
    "delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen",
    "fspick", "get_kernel_syms", "init_module", "ioperm", "iopl", "kcmp", "kexec_file_load",
    "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr", "move_mount",
    "move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at", "open_tree",
    "perf_event_open", "pivot_root", "query_module", "quotactl", "quotactl_fd", "reboot",
    "request_key", "setdomainname", "sethostname", "setns", "settimeofday", "swapoff",
    "swapon", "syslog", "umount", "umount2", "unshare", "uselib", "userfaultfd", "ustat",
    "vhangup",
)
# fmt: on
"""Answered with EPERM: what container engines refuse to a process without capabilities."""

NEW_NAMESPACES = 0x7E020000
"""Every CLONE_NEW* flag of clone."""


def profile(machine: str = "") -> dict[str, Any]:
    """The filter as OCI's ``linux.seccomp``. Only the machine's own architecture is let through."""
    architecture = ARCHITECTURES.get(machine or platform.machine())
    new_namespace = {"index": 0, "value": NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    refusals: list[dict[str, Any]] = [
        {"names": list(ABSENT), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
        {"names": list(FORBIDDEN), "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM},
    ]
    for flag in (1 << bit for bit in range(32) if NEW_NAMESPACES & (1 << bit)):
        argument = new_namespace | {"value": flag, "valueTwo": flag}
        refusals.append(
            {
                "names": ["clone"],
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": errno.EPERM,
                "args": [argument],
            }
        )
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": [architecture] if architecture else [],
        "syscalls": refusals,
    }
