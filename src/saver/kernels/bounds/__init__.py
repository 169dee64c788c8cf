"""How far sums and means may be from what they stand for: the formulas of ledgers and intervals."""
