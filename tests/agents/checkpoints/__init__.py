"""The chunk store: what goes in comes out, once, whole, or not at all."""
