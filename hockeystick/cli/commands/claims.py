"""The command ``claims``: published figures, recomputed and judged."""

from __future__ import annotations

from typing import Any

import click

import hockeystick as hs
from hockeystick.cli.flags import options
from hockeystick.cli.flags.once import Once
from hockeystick.cli.terminal.progress import bar


@click.command(cls=Once)
@click.argument("documents", metavar="[DOCUMENT]...", nargs=-1)
@click.option("--list", "listed", is_flag=True, help="Only list the documents.")
@click.option("--markdown", is_flag=True, help="Print the table as a page of documentation.")
@click.option(
    "--cite", is_flag=True, help="Also print each document's source, and how to cite a finding."
)
@options.json_flag
def claims(
    documents: tuple[str, ...], listed: bool, markdown: bool, cite: bool, as_json: bool
) -> None:
    """Recompute published figures and say what becomes of each.

    For every figure or statement of five documents: the value as printed, the value by the
    document's own method, what is proven, and the verdict. A DOCUMENT is the name of one, or the id
    of a claim, or what ids begin with up to a slash; without one, all are checked, in a minute.
    """
    if markdown and as_json:
        raise click.UsageError("--markdown and --json are both given; choose one of them")
    if cite and (markdown or as_json):
        other = "--markdown" if markdown else "--json"
        raise click.UsageError(f"--cite is for the tables: {other} has the sources in any case")
    if listed:
        _list(documents, markdown=markdown, as_json=as_json, cite=cite)
        return
    from hockeystick.literature import check

    with bar("checking claims") as tell:
        checked = check(*documents, tell=tell)
    if as_json:
        from hockeystick.cli.panels import claims_page

        click.echo(claims_page.json_page(checked, hs.__version__))
    elif markdown:
        from hockeystick.cli.panels import claims_page

        click.echo(claims_page.markdown_page(checked))
    else:
        from hockeystick.cli.panels import claims_table

        claims_table.print_claims(checked)
        if cite:
            claims_table.print_sources(checked, hs.__version__)


def _list(documents: tuple[str, ...], **other: Any) -> None:
    """Print the documents."""
    wrong = [f"--{name.replace('as_', '')}" for name, given in other.items() if given]
    if documents or wrong:
        raise click.UsageError("--list lists all documents, and takes nothing else")
    from hockeystick.cli.panels import claims_table

    claims_table.print_documents()
