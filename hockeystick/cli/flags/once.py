"""Commands whose flags may be given once, of two values neither is taken; what a plan may be."""

from __future__ import annotations

import re
import shlex
from typing import Final

import click

from hockeystick._synonyms import meant
from hockeystick.cli.flags.examples import write_examples
from hockeystick.cli.flags.written_out import written_out

# Under this name a context has the words that its command was given.
GIVEN: Final = "hockeystick.given"
# More letters than a sentence has.
_WHOLE: Final = 1000
_TO_ADD_UP: Final = (
    "hockeystick diff compares two plans; to add up runs on the same data, write 'A @ B', or a "
    "[[release]] table for each in one file"
)
_CHECK: Final = (
    ": hockeystick epsilon PLAN --at-most E says whether a plan is within a budget; check "
    "computes nothing"
)
_NO_PLAN: Final = (
    "; hockeystick plan finds plans for a budget: hockeystick epsilon says what a plan costs, and "
    "hockeystick check what it means"
)
_NO_NUMBERS: Final = (
    ": init takes no numbers: write them into the file that it makes, or let --ask ask for them, "
    "on a terminal"
)
# What is wrong with the number of files, by command: one too many, or one too few.
_TOO_MANY: Final = {
    "verify": "verify takes one file at a time: after the first, hockeystick verify {}",
    "diff": "diff compares two plans: each of the others goes with a diff of its own",
}
_ONE_PLAN: Final = "Missing the second plan: diff compares two, as hockeystick diff {} other.toml"
# Numbers of plans that are flags of other commands.
_NUMBERS_OF_PLANS: Final = (
    "--examples",
    "--batch-size",
    "--rate",
    "--epochs",
    "--steps",
    "--noise-multiplier",
    "--delta",
)
# Flags of one command that belong to another, and flags that others have for what is one here.
_OTHER_COMMANDS: Final = {
    (
        "epsilon",
        "--epsilon",
    ): ": hockeystick delta asks at an epsilon, hockeystick solve meets one, --at-most checks one",
    ("delta", "--delta"): ": hockeystick epsilon asks at a delta, hockeystick solve meets one",
    **{("check", flag): _CHECK for flag in ("--epsilon", "--at-most", "--max-epsilon", "--budget")},
    (
        "epsilon",
        "--target-epsilon",
    ): ": hockeystick solve PLAN --parameter noise_multiplier --epsilon E finds what meets it, and "
    "--at-most E says whether the plan does",
    (
        "check",
        "--delta",
    ): ": hockeystick epsilon PLAN --delta D asks there; check tells the delta of "
    "the file, and computes nothing",
    ("tradeoff", "--delta"): ": leave it out: a trade-off curve holds at every delta, and "
    "hockeystick epsilon asks at one",
    ("tradeoff", "--epsilon"): ": leave it out: a trade-off curve holds at every epsilon, and "
    "hockeystick delta asks at one",
    **{
        (command, flag): hint
        for command in ("epsilon", "delta", "tradeoff", "report", "compare", "convert")
        for flag, hint in (
            ("--rho", ": a zCDP budget is a plan as well, written out: 'ZCDP(rho=0.5)'"),
            ("--mu", ": a GDP budget is a plan as well, written out: 'GDP(mu=0.5)'"),
        )
    },
    **{
        (command, "--sensitivity"): ": it is in the plan, as 'DiscreteGaussian(4, sensitivity=2)' "
        "or, over the sensitivity, 'Gaussian(4 / 2)'"
        for command in ("epsilon", "delta", "solve", "tradeoff", "report", "compare", "convert")
    },
    ("init", "--rho"): ": a budget is written out, as --budget 'ZCDP(rho=0.5)'",
    (
        "init",
        "--epsilon",
    ): ": a budget is written out, as --budget 'ApproxDP(epsilon=3, delta=1e-6)'",
}
# Elsewhere a plan file may have a flag.
_OF_A_FILE: Final = ("--plan", "--plan-file", "--file", "--input", "--config")
_BARE: Final = ": a plan file is given without a flag: hockeystick {} plan.toml"
_OTHER_FLAGS: Final = {
    "--alpha": "fpr",
    "--logical-batch-size": "batch-size",
    "--noise": "noise-multiplier",
    "--output": "out",
    "--zcdp": "rho",
    "--epsilon": "at-most",
    "--budget": "at-most",
    "--epsilon-budget": "at-most",
    "--max-epsilon": "at-most",
    "--target-epsilon": "at-most",
}
_TARGET: Final = "--target-"
# What is often asked for at several values.
SWEPT: Final = ("epochs", "steps", "noise_multiplier", "batch_size", "rate", "delta")
_SWEPT: Final = " (several at once: hockeystick epsilon, hockeystick sweep, or hockeystick plan)"
_ROWS: Final = ("epsilon", "delta")
_WITH_COMMAS: Final = "several values of a flag go with commas between, as --epochs 10,20,30"
_NUMBERS: Final = re.compile(r"\([\d\s.,e-]+\)$")
_CLIPPING_NORM: Final = ": leave it out, as --noise-multiplier is in units of the clipping norm"
_CLIPPING_NORMS: Final = (
    "--clip",
    "--clip-norm",
    "--clipping-norm",
    "--max-grad-norm",
    "--l2-norm-clip",
)
_WHOLE_BATCH: Final = "--batch-size is the whole of it, or --rate 1/LEN for a loader of LEN batches"
_SPLIT: Final = (
    ": leave it out: parts into which a batch is split to fit into memory, as Opacus's "
    f"BatchMemoryManager does, count as the one batch that was drawn: {_WHOLE_BATCH}"
)
_ADDED_UP: Final = (
    f"{_SPLIT}; batches that are each drawn anew and added up are no such batch, and have no plan"
)
_PROCESSES: Final = (
    ": leave it out: what all processes draw for a step is one batch, and nothing else counts: "
    f"{_WHOLE_BATCH} that make_private was given"
)
# How a step is computed, which changes no cost.
_COMPUTED: Final = {
    **dict.fromkeys(
        (
            "--physical-batch-size",
            "--max-physical-batch-size",
            "--micro-batch-size",
            "--virtual-batch-size",
        ),
        _SPLIT,
    ),
    **dict.fromkeys(
        (
            "--accumulate",
            "--accumulate-grad-batches",
            "--accumulation",
            "--accumulation-steps",
            "--grad-accumulation-steps",
            "--gradient-accumulation-steps",
            "--n-accumulation-steps",
        ),
        _ADDED_UP,
    ),
    **dict.fromkeys(
        ("--world-size", "--gpus", "--num-gpus", "--n-gpus", "--devices", "--ranks", "--nproc"),
        _PROCESSES,
    ),
}
_OF_CLIENTS: Final = (
    "--clients",
    "--total-clients",
    "--num-clients",
    "--clients-per-round",
    "--rounds",
    "--num-rounds",
    "--local-steps",
    "--local-epochs",
)
_CLIENTS: Final = (
    ": flags describe DP-SGD; clients are a plan, written out, for example "
    "'FedSDP(total_clients=10000, "
    'clients_per_round=100, rounds=1000, noise_multiplier=1, sampling="poisson")\', or a file: '
    "hockeystick init clients.toml --like FedSDP; numbers of such a file are set by their paths: "
    "--set 'release[0].rounds=400'"
)
# What the arguments of commands are called that are plans.
_PLANS: Final = ("plan_file", "plans")
_A_PLAN: Final = (
    "PLAN is a plan file, - for one on standard input, or the plan itself as it is in Python: "
    "'Laplace(2)**3 @ Gaussian(4)'."
)


class Once(click.Command):
    """A command that refuses a flag given twice, unless the flag says that it may be."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, then raise for the first flag that is given twice."""
        given = list(args)
        ctx.meta[GIVEN] = tuple(args)
        rest = self._parsed(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(given)
        for index, one in enumerate(order):
            if _takes_one_value(one) and one in order[:index]:
                name = max(one.opts, key=len)
                told = f"{name} is given twice; give it once{self._at_once(one.name, name)}"
                raise click.UsageError(told, ctx)
        return rest

    def _at_once(self, name: str | None, flag: str) -> str:
        """Return how to ask at several values of a flag, where that is often asked."""
        if name not in SWEPT or not self._takes_a_plan():
            return ""
        return f" (several at once: {flag} A,B,C)" if self.name in _ROWS else _SWEPT

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, or raise with a guess that is near, or with none."""
        flags = [flag for one in self.params for flag in one.opts if flag.startswith("--")]
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise self._unknown(error, flags, ctx) from None
        except click.UsageError as error:
            raise self._of_number(error, ctx) from None
        for one in self.params:
            if _takes_one_value(one) and ctx.params.get(one.name or "") in flags:
                raise click.UsageError(f"{max(one.opts, key=len)} needs a value", ctx)
        return rest

    def _of_number(self, error: click.UsageError, ctx: click.Context) -> click.UsageError:
        """Return an error; where files or plans are too many or too few, with what to write."""
        first = ctx.params.get("first")
        if isinstance(error, click.MissingParameter) and self.name == "diff" and first is not None:
            return click.UsageError(_ONE_PLAN.format(shlex.quote(first)), ctx)
        if "unexpected extra argument" not in error.message:
            return error
        if self.name == "plan":
            return click.UsageError(f"{error.message}{_NO_PLAN}", ctx)
        if self.name in _TOO_MANY:
            extra = error.message.partition("(")[2].rstrip(")").split(" ")[0]
            return click.UsageError(f"{error.message}; {_TOO_MANY[self.name].format(extra)}", ctx)
        if not self._takes_a_plan():
            return error
        of_a_flag = self.name in _ROWS and _NUMBERS.search(error.message)
        hint = _WITH_COMMAS if of_a_flag else _TO_ADD_UP
        return click.UsageError(f"{error.message}; {hint}", ctx)

    def _unknown(
        self, error: click.NoSuchOption, flags: list[str], ctx: click.Context
    ) -> click.NoSuchOption:
        """Return the error for a flag that there is not, and which one was meant."""
        name = error.option_name
        names = [one[2:].replace("-", "_") for one in flags]
        found = _OTHER_FLAGS.get(name) or meant(name.lstrip("-"), names)
        if name.startswith(_TARGET) and f"--{found}" not in flags:
            found = name.removeprefix(_TARGET)
        flag = f"--{found}".replace("_", "-")
        hint = f". Did you mean {flag!r}?" if flag in flags else ""
        if name in _OF_A_FILE and any(one.name in _PLANS for one in self.params):
            hint = _BARE.format(self.name)
        if name in _CLIPPING_NORMS and "--clipping" in flags:
            hint = _CLIPPING_NORM
        if name in _COMPUTED and "--batch-size" in flags:
            hint = _COMPUTED[name]
        if name in _OF_CLIENTS and "--batch-size" in flags:
            hint = _CLIENTS
        if self.name == "convert":
            hint = written_out(ctx.meta[GIVEN], name) or hint
        hint = _OTHER_COMMANDS.get((self.name or "", name), hint)
        if name in _NUMBERS_OF_PLANS and "--like" in flags:
            hint = _NO_NUMBERS
        return click.NoSuchOption(name, f"No such option {name!r}{hint}", ctx=ctx)

    def _takes_a_plan(self) -> bool:
        """Return whether an argument is a plan."""
        return any(one.name == "plan_file" for one in self.params)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help, whole."""
        return super().get_short_help_str(_WHOLE)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say what a plan may be, where the command takes one; end with examples."""
        if self._takes_a_plan():
            formatter.write_paragraph()
            formatter.write_text(_A_PLAN)
        super().format_epilog(ctx, formatter)
        write_examples(ctx, formatter)


def _takes_one_value(parameter: click.Parameter) -> bool:
    """Return whether another value of a parameter would replace the one before it."""
    return isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag)
