"""Resource sensitivity: CPUs and memory re-split among jobs by what each gains from them."""

from scheduler.planner.sensitivity.hosts import Splits
from scheduler.planner.sensitivity.matrix import Matrix, Point, matrix_of
from scheduler.planner.sensitivity.profiling import predict
from scheduler.planner.sensitivity.sharing import (
    Allocator,
    Host,
    Slice,
    Task,
    greedy,
    proportional,
)
from scheduler.planner.sensitivity.tuning import tune, tune_as_published

__all__ = [
    "Allocator",
    "Host",
    "Matrix",
    "Point",
    "Slice",
    "Splits",
    "Task",
    "greedy",
    "matrix_of",
    "predict",
    "proportional",
    "tune",
    "tune_as_published",
]
