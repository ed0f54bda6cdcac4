"""``tidepool``, the command line: everything that the pages do, over the public API alone."""

from portal.client.program import main

__all__ = ["main"]
