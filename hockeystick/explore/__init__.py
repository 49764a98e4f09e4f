"""A page to play with: sliders for a plan's numbers, and what is proven of it while they move."""
