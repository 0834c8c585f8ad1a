"""A result for people and programs. Source: docs/design.md#json and docs/design.md#page."""
