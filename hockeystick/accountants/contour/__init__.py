"""The contour accountant: delta as one integral over a vertical line in the complex plane.

With ``K(z) = sum n_i ln E[exp(z L_i)]`` and any ``c > 0``,

    delta(epsilon) = (1/pi) Int_0^inf Re[exp(K(z) - epsilon z) / (z (1 + z))] dy,  z = c + i y

(Alghamdi et al. 2023, theorem 3.1). On a line through the saddle point nothing cancels, so delta
has full relative precision however small it is and however many runs there are. Files:
``_integral`` chooses a line, its step and its height, sums along it and bounds every error;
``search`` finds the line for an epsilon or a delta; ``_far_outputs`` takes out what is rare and
nearly in closed form; ``many`` answers many questions by few integrals; ``_digits`` computes the
same sum in arbitrary precision; ``accountant`` adds Gaussian noise where no transform decays.
"""

from hockeystick.accountants.contour.accountant import Contour

__all__ = ["Contour"]
