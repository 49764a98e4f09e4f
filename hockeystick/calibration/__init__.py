"""Solving for one parameter, splitting and spending budgets, sweeping over plans."""
