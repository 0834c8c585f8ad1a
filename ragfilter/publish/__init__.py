"""Self-contained HTML reports of a query, a comparison, or a run.

Pure: values in, one HTML text out. Source: docs/design.md#reports.
"""
