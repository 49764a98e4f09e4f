"""What is made of trade-off functions: groups, mixtures, comparisons, divergences."""
