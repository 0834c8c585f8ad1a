"""The filter as a service over HTTP, for programs in any language."""
