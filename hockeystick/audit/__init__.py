"""What attacks on real outputs find, against what was proven."""
