"""What ends the help of each command: examples to paste, which run one after the other.

They run in an empty directory. Where they name ``plan.toml``, that is what ``hockeystick init``
makes; every other file is made by a line above.
"""

from __future__ import annotations

from typing import Final

_LEDGER: Final = "hockeystick ledger init census --budget 'ZCDP(rho=0.5)' --ledger ledger.db"
_RESERVED: Final = "hockeystick ledger reserve census 'Gaussian(4)' --key run-7 --ledger ledger.db"
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "hockeystick": (
        "hockeystick init",
        "hockeystick init --list",
        "hockeystick epsilon plan.toml",
        "hockeystick solve plan.toml --parameter noise_multiplier --epsilon 2",
        "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
    ),
    "hockeystick audit": (
        r"printf 'score,included\n2.1,1\n0.3,0\n1.7,1\n0.2,0\n' > scores.csv",
        "hockeystick audit scores.csv --plan plan.toml",
        "hockeystick audit scores.csv --delta 1e-5 --confidence 0.99",
    ),
    "hockeystick check": (
        "hockeystick check plan.toml",
        "hockeystick check --schema > plan.schema.json",
    ),
    "hockeystick compare": (
        "hockeystick compare 'Gaussian(4) @ Laplace(2)**3' --delta 1e-6",
        "hockeystick compare plan.toml noise_multiplier=1.3",
    ),
    "hockeystick convert": (
        "hockeystick convert 'ZCDP(rho=0.5)' --to ApproxDP --delta 1e-6",
        "hockeystick convert 'RenyiDP({2: 0.5, 8: 1.9})' --to ApproxDP --epsilon 2",
    ),
    "hockeystick delta": (
        "hockeystick delta 'Laplace(2)**3 @ Gaussian(4)' --epsilon 2",
        "hockeystick delta plan.toml --epsilon 3 --at-most 1e-5",
    ),
    "hockeystick epsilon": (
        "hockeystick epsilon 'Laplace(2)**3 @ Gaussian(4)' --delta 1e-6",
        "hockeystick epsilon plan.toml epochs=30 --at-most 3",
        "hockeystick epsilon rate=0.004 steps=14000 noise_multiplier=1.1 --delta 1e-5",
    ),
    "hockeystick explore": ("hockeystick explore", "hockeystick explore plan.toml --no-browser"),
    "hockeystick init": (
        "hockeystick init --list",
        "hockeystick init my-plan.toml",
        "hockeystick init laplace.toml --like Laplace",
        "hockeystick init - --like 'Laplace(2)**3 @ Gaussian(4)'",
    ),
    "hockeystick ledger": (
        "export HOCKEYSTICK_LEDGER=ledger.db",
        "hockeystick ledger init census --budget 'ZCDP(rho=0.5)'",
        "hockeystick ledger reserve census 'Gaussian(4)' --key run-7",
        "hockeystick ledger commit census run-7",
        "hockeystick ledger status",
    ),
    "hockeystick ledger init": (
        _LEDGER,
        "hockeystick ledger init trial --budget 'ApproxDP(2, 1e-6)' --ledger ledger.db",
        "hockeystick init sgd.toml",
        "hockeystick ledger init sgd --budget 'ApproxDP(2, 1e-6)' --expected sgd.toml "
        "--ledger ledger.db",
    ),
    "hockeystick ledger status": (
        _LEDGER,
        "hockeystick ledger status census --delta 1e-6 --ledger ledger.db",
    ),
    "hockeystick ledger reserve": (_LEDGER, _RESERVED),
    "hockeystick ledger commit": (
        _LEDGER,
        _RESERVED,
        "hockeystick ledger commit census run-7 --ledger ledger.db",
    ),
    "hockeystick ledger release": (
        _LEDGER,
        _RESERVED,
        "hockeystick ledger release census run-7 --note 'never began' --ledger ledger.db",
    ),
    "hockeystick ledger log": (
        _LEDGER,
        "hockeystick ledger log census --last 5 --ledger ledger.db",
    ),
    "hockeystick ledger verify": (
        _LEDGER,
        "hockeystick ledger status --json --ledger ledger.db > heads.json",
        "hockeystick ledger verify --noted heads.json --ledger ledger.db",
    ),
    "hockeystick report": (
        "hockeystick report 'Gaussian(4)' --delta 1e-6 -o gaussian.html",
        "hockeystick report plan.toml -o report.html --budget-epsilon 3",
    ),
    "hockeystick solve": (
        "hockeystick solve 'Laplace()**10 @ Gaussian(4)' --epsilon 2 --delta 1e-6",
        "hockeystick solve rate=0.004 steps=14000 --epsilon 2 --delta 1e-5",
        "hockeystick solve plan.toml --parameter epochs --whole --epsilon 2 -o shorter.toml",
    ),
    "hockeystick sweep": (
        r"""printf '[dpsgd]\nexamples = 60_000\nbatch_size = 256\nepochs = 1\n' > grid.toml""",
        r"""printf '[grid]\nnoise_multiplier = [1, 2]\n[ask]\nfind = "epsilon"\n' >> grid.toml""",
        r"printf 'delta = 1e-5\n' >> grid.toml",
        "hockeystick sweep grid.toml -o answers.csv",
    ),
    "hockeystick tradeoff": (
        "hockeystick tradeoff 'Gaussian(4)' --fpr 0.01",
        "hockeystick tradeoff plan.toml 'Gaussian(1)'",
    ),
    "hockeystick verify": (
        "hockeystick epsilon 'Gaussian(4)' --delta 1e-6 --json > answer.json",
        "hockeystick verify answer.json",
        "hockeystick verify plan.toml",
    ),
}
