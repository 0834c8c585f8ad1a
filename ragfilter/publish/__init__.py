"""Self-contained HTML reports of a query, a comparison, or a run."""
