"""What rows look like in the API, and what requests must look like."""
