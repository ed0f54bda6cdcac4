"""Tests of the profiler's own decisions."""
