"""Runs and results at a URL: a job works in a folder of its machine, whose twin is kept where all nodes see it."""
