"""Which value of one parameter meets a target."""
