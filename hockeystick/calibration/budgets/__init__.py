"""How much noise a budget asks for, of one query or of several."""
