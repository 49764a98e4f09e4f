"""The command ``plan``: what a budget buys, noise against length against batch size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

import hockeystick as hs
from hockeystick import _validate
from hockeystick.adjacency import Adjacency
from hockeystick.calibration.sweeps.frontier import FrontierPoint
from hockeystick.cli.as_json import dumped
from hockeystick.cli.flags import options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.flags.out_file import picture_path, plot_flags, whole
from hockeystick.cli.results.planned import Planned
from hockeystick.cli.terminal.progress import bar
from hockeystick.errors import IncompatibleError
from hockeystick.io import parse
from hockeystick.mechanisms import DPSGD, Clipping, Sampling

_EPOCHS: Final = (1, 3, 10, 30, 100)
_BATCH_SIZES: Final = (64, 256, 1024, 4096, 16_384)
# One batch of everything: whatever the sampling, it is a plan, and its size does not stay.
_ANYTHING: Final = {"noise_multiplier": 1, "epochs": 1}


@click.command(cls=Once)
@click.option("--examples", metavar="N", help="Size of the training set.")
@click.option("--epsilon", metavar="E", help="The budget's epsilon.")
@click.option("--delta", metavar="D", help="The budget's delta.")
@click.option("--epochs", metavar="E,E,...", help="Lengths in passes; 1 to 100 by default.")
@click.option("--batch-size", metavar="N,N,...", help="Batch sizes; 64 to 16384 by default.")
@click.option("--sampling", metavar="NAME", help=f"How batches are drawn: {', '.join(Sampling)}.")
@click.option("--clipping", metavar="NAME", help=f"What is clipped: {', '.join(Clipping)}.")
@click.option("--adjacency", metavar="NAME", help=f"Which are neighbours: {', '.join(Adjacency)}.")
@plot_flags("it")
@options.json_flag
def plan(
    examples: str | None,
    epsilon: str | None,
    delta: str | None,
    epochs: str | None,
    batch_size: str | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    **flags: str | None,
) -> None:
    """Print what a budget buys: the least noise for each length and batch size.

    Noise multipliers are rounded up; each of the plans meets the budget, provably. A larger batch
    needs more noise on its sum and leaves less on its mean, which is what the model sees.
    """
    needed = {"examples": examples, "epsilon": epsilon, "delta": delta}
    for name, text in needed.items():
        if text is None:
            allowed = _validate.PARAMETERS[name].allowed
            raise click.UsageError(f"Missing --{name}: {allowed}")
    given: dict[str, Any] = {name: parse(text) for name, text in needed.items() if text}
    picture = picture_path(plot, force)
    base = _base(_validate.count("examples", given["examples"]), flags)
    target = hs.ApproxDP(epsilon=given["epsilon"], delta=given["delta"])
    sizes = [size for size in _BATCH_SIZES if size <= given["examples"]] or [given["examples"]]
    with bar("planning") as tell:
        points = hs.calibration.frontier(
            base,
            target,
            epochs=_listed("epochs", epochs, _EPOCHS),
            batch_sizes=_listed("batch_size", batch_size, sizes),
            progress=tell,
        )
    done = Planned(base, target, points, plot)
    _refuse_nothing(points)
    if picture is not None:
        _draw(done, picture, force)
    if as_json:
        click.echo(_json(done))
    else:
        from hockeystick.cli.panels import plan_table, render

        render.print_plainly(plan_table.panel(done), render.WIDER)


def _base(examples: int, flags: dict[str, str | None]) -> DPSGD:
    """Return the plan of which noise, length and batch size are to be found."""
    make: Any = DPSGD
    given = {name: text for name, text in flags.items() if text is not None}
    base: DPSGD = make(**_ANYTHING, examples=examples, batch_size=examples, **given)
    if base.sampling is Sampling.FULL_BATCH:
        raise IncompatibleError("sampling 'full-batch' has batches of one size: there is no choice")
    return base


def _listed(name: str, text: str | None, default: Sequence[float]) -> tuple[Any, ...]:
    """Return the numbers of a list with commas, or raise."""
    if text is None:
        return tuple(default)
    check: Any = _validate.count if name == "batch_size" else _validate.real
    asked = [check(name, parse(part.strip())) for part in text.split(",")]
    whole = [int(value) if value == int(value) else value for value in asked]
    return tuple(dict.fromkeys(whole))


def _refuse_nothing(points: Sequence[FrontierPoint]) -> None:
    """Raise where the budget buys nothing at all."""
    if all(one.plan is None for one in points):
        raise IncompatibleError(points[0].reason)


def _draw(done: Planned, path: Path, force: bool) -> None:
    """Write the picture."""
    from hockeystick.calibration.sweeps.frontier import draw

    with whole(path, force) as part:
        draw(done.points, str(part), done.title)


def _json(done: Planned) -> str:
    """Return what a budget buys as strict JSON in ASCII."""
    told = {
        "version": hs.__version__,
        "budget": {"epsilon": done.target.epsilon, "delta": done.target.delta},
        "examples": done.base.examples,
        "sampling": str(done.base.sampling),
        "adjacency": str(done.base.adjacency),
        "assumptions": list(done.assumptions),
        "points": [_told(one) for one in done.points],
        "plot": done.plot,
    }
    return dumped(told)


def _told(one: FrontierPoint) -> dict[str, Any]:
    """Return one point ready for JSON."""
    return {
        "epochs": one.epochs,
        "batch_size": one.batch_size,
        "steps": one.steps,
        "noise_multiplier": one.noise_multiplier,
        "noise_on_mean": one.noise_on_mean,
        "epsilon_upper": one.achieved,
        "reason": one.reason or None,
    }
