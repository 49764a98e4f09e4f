"""Privacy profiles, and what is read off them."""
