"""Containers on this node: bundles, networks, and the keeper of each one's output."""
