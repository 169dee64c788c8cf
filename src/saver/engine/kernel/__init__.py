"""The compiled loop: what `reference.run_once` does, on plain arrays."""
