"""The commands, one file each; those that ask one question of a plan are in ``group``."""
