"""Releases of parties without a server that all trust: sums on graphs, walking models."""

from hockeystick.mechanisms.decentralised.gopa import GOPA
from hockeystick.mechanisms.decentralised.graphs import Graph
from hockeystick.mechanisms.decentralised.iterated import NoisyIterations
from hockeystick.mechanisms.decentralised.token_walk import TokenWalk

__all__ = ["GOPA", "Graph", "NoisyIterations", "TokenWalk"]
