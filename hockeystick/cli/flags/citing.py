"""The flag that asks which theorems an answer rests on."""

from __future__ import annotations

import click

cite_flag = click.option(
    "--cite",
    is_flag=True,
    help="Also print which theorems the answer rests on; JSON has them in any case.",
)
