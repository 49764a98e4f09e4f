"""One question at every cell of a grid."""
