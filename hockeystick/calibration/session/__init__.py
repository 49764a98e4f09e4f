"""What has run so far, and what it costs."""
