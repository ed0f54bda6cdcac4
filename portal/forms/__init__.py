"""What people fill in; each form turns text into what an action expects."""
