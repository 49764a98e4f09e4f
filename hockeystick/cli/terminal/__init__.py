"""Signs of life on the terminal."""
