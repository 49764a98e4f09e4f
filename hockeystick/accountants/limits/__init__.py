"""The central limit theorem, with and without a proven error."""
