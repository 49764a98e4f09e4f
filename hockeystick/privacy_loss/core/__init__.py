"""What the losses of many families are made of."""
