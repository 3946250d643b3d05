"""Engines that run tasks: this machine or a Ray cluster."""
