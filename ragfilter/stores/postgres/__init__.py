"""A whole workspace in one PostgreSQL database, with pgvector; folders need none of it."""
