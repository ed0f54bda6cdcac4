"""Ways to run a replica: containers, plain processes, and a fake that ships."""
