"""Makes `tests` a package, so that scripts and worker processes do not import another installed `tests`."""
