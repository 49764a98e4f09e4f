# The public names and where they are: type checkers read it, and they are loaded by it.
from .client_training import ClientTraining as ClientTraining
from .client_updates import (
    ClientRounds as ClientRounds,
    Cohort as Cohort,
    noisy_update as noisy_update,
)
from .clusters import lloyd_step as lloyd_step, sanitized as sanitized
from .rounds import draw_clients as draw_clients, first_rounds as first_rounds

__all__: list[str]
