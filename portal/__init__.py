"""The web: pages, REST API, sockets and rows."""
