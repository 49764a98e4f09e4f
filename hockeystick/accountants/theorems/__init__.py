"""Theorems of composition: what the parameters of single runs add up to."""
