"""ragfilter: see, tune and explain what is filtered out between a vector search and a prompt."""

__version__ = "0.1.0"
