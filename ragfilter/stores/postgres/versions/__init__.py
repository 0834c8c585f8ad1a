"""The versions of the schema, oldest first. A step that was released never changes."""
