"""ragfilter in your own code: filter hits from any store, directly or through other libraries."""
