"""Pictures and figures from plain data; nothing here reads a row or the clock."""
