"""What a newcomer runs: computations that write tables."""
