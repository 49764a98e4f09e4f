"""What a command has found out: what its panel prints, and what it writes as JSON."""
