"""What jobs of the test fleet run; each file stands alone."""
