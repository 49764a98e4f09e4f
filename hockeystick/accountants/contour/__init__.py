"""The contour accountant: delta as one integral over a vertical line in the complex plane.

With ``K(z) = sum n_i ln E[exp(z L_i)]`` and any ``c > 0``,

    delta(epsilon) = (1/pi) Int_0^inf Re[exp(K(z) - epsilon z) / (z (1 + z))] dy,  z = c + i y

(Alghamdi et al. 2023, theorem 3.1). On a line through the saddle point nothing cancels, so delta
has full relative precision however small it is and however many runs there are. Files:
``_line`` chooses the line, its step and its height; ``_integral`` sums along it and bounds every
error; ``search`` finds the line for an epsilon or a delta, from a ``_guess``; ``_far_outputs``
takes out what is rare and nearly in closed form; where that does not do, ``_tail_and_bulk`` splits
off rare large losses; ``_smoothed`` adds Gaussian noise where the transform does not decay;
``_digits`` computes the same sum in arbitrary precision.
"""

from hockeystick.accountants.contour.accountant import Contour

__all__ = ["Contour"]
