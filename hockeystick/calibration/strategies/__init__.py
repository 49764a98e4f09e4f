"""Strategies of correlated noise: the error of running sums, and what makes it small."""
