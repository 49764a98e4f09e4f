"""The newest analyses, each beside the packages that have it and the figure that was published."""
