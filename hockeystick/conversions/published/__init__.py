"""What published formulas and the tools of a time say, for comparison."""
