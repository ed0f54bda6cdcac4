"""One process a node: runs replicas and knows neither Django nor the scheduler."""
