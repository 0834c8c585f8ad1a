"""A whole workspace in one PostgreSQL database with pgvector. Folders do not use this."""
