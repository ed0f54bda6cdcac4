"""The story that `make demo` plays against the running product, through the public API alone."""
