"""The filter as a service over HTTP, for programs in any language."""

from ragfilter.basics.extras import check_installed

check_installed("fastapi", extra="serve")
