from ragfilter.errors import check_installed

check_installed("fastapi", extra="serve")
