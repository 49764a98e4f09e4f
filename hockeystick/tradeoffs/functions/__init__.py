"""Trade-off functions of mechanisms, of polygons, of Renyi divergences."""
