"""Accelerators: what a node has, how busy it is, and what a holder may use."""
