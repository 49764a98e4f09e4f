"""Plans whose privacy profile has a closed form, and bounds by such plans."""
