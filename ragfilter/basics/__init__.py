"""Utilities for all parts: files, TOML, the database, deadlines and caches."""
