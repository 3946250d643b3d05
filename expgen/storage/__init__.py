"""Runs and results at a URL: a job works in a local folder, which is uploaded to storage that all nodes can read."""
