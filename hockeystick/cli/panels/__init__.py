"""Answers for people: panels and tables."""
