"""A package by itself, so that no other `tests` that is installed is taken for it by scripts and worker processes."""
