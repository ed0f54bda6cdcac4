"""Lists come in pages."""

from __future__ import annotations

from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    """``?page=2&page_size=50``; answers ``count``, ``next``, ``previous`` and ``results``."""

    page_size = 50
    max_page_size = 500
    page_size_query_param = "page_size"
