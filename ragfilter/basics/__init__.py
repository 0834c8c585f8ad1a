"""What every part may use: optional packages, files, TOML, the database, deadlines and caches."""
