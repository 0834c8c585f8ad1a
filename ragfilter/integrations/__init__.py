"""Adapters for other libraries, one file each. None of them is imported before it is used."""
