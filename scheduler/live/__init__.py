"""The real fleet: rows in, guarded updates out."""
