"""What each user reports."""
