"""The versions of the schema, oldest first. A released version never changes."""
