"""The solver of the exact program, and what it is made of."""
