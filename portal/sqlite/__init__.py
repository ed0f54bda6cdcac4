"""Django's SQLite, with writers that queue; named as ``ENGINE`` of the database."""
