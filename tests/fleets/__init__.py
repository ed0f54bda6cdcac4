"""A fleet on one machine: hosts in network namespaces of their own, joined by a switch."""
