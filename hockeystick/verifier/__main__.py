"""Judge the answer in a file, JSON or a report in HTML: ``python -m verifier FILE``."""

import sys

from . import answer_in, verify


def main() -> int:
    """Judge the answer in a file, JSON or a report in HTML, and print the verdict."""
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            text = file.read()
        verdict = verify(answer_in(text) if text.lstrip().startswith("<") else text)
    except Exception as error:  # exit status 1 would say "refuted"
        sys.stderr.write(f"usage: python -m verifier FILE; {error}\n")
        return 2
    lines = [verdict.status, *filter(None, [verdict.reason]), *map(str, verdict.checks)]
    sys.stdout.write("\n".join([*lines, ""]))
    return verdict.exit_status


if __name__ == "__main__":
    sys.exit(main())
