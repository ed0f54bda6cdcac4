"""Containers on this node: bundles, networks, control groups and the keeper of each one's output."""
