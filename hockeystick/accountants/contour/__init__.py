"""The contour accountant: delta as one integral over a vertical line in the complex plane.

On a line through the saddle point nothing cancels, so delta has full relative precision however
small it is and however many runs there are. Files: ``_integral`` has the integral, chooses a line,
sums along it and bounds every error; ``search`` finds the line for an epsilon or a delta;
``_far_outputs`` takes out what is rare and nearly in closed form; ``many`` answers many questions
by few integrals; ``_digits`` computes the same sum in arbitrary precision; ``accountant`` adds
Gaussian noise where no transform decays.
"""

from hockeystick.accountants.contour.accountant import Contour

__all__ = ["Contour"]
