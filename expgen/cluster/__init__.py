"""Where work is done: this machine, or a Ray cluster."""
