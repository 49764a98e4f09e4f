"""Statistics of rows of numbers, and sums of clipped gradients, with exact noise."""
