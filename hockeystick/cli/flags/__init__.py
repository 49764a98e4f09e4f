"""The flags that commands share, and what they and a file amount to."""
