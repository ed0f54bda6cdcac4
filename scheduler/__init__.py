"""The planner, the cycle that acts on its plans, and the two worlds it runs in."""
