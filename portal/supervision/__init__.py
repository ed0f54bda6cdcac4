"""Everything on one machine: ``manage.py up`` starts, watches, restarts and stops it."""
