"""What can be said of every loss: its moments, the line above its Renyi divergences."""
