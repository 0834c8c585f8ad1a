"""The filter as a service over HTTP, for programs in any language."""

from ragfilter.errors import check_installed

check_installed("fastapi", extra="serve")
