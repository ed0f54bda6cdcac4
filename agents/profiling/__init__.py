"""Measuring what a running replica gains from CPUs, without a change to its code."""

from agents.profiling.session import DisturbedError, UnsteadyError, measure

__all__ = ["DisturbedError", "UnsteadyError", "measure"]
