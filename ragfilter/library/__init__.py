"""ragfilter in your own code: filters hits from any store, also through other libraries."""
