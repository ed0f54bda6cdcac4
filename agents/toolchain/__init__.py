"""runc and CRIU for this node: the system's own where new enough, else from a private prefix."""

from agents.toolchain.programs import Toolchain, find

__all__ = ["Toolchain", "find"]
