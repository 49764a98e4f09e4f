"""Training with several parties."""
