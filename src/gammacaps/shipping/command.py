"""python -m gammacaps.shipping make RECIPE NAME; by hand: halve RUN HALVED, `gammacaps evaluate`, card HALVED NAME"""

import shlex
import sys
from pathlib import Path

import tyro

from gammacaps.errors import InputError
from gammacaps.program import command
from gammacaps.shipping.card import card
from gammacaps.shipping.halve import halve
from gammacaps.shipping.make import MakeConfig, make

DEFAULT = MakeConfig()


def main() -> None:
    try:
        tyro.extras.subcommand_cli_from_dict(
            {"make": _make, "halve": _halve, "card": _card}, config=(tyro.conf.OmitArgPrefixes,)
        )
    except InputError as error:
        print(f"gammacaps: {error}", file=sys.stderr)
        sys.exit(2)


def _make(recipe: tyro.conf.Positional[Path], name: tyro.conf.Positional[str], /, config: MakeConfig = DEFAULT) -> None:
    """Make the shipped network NAME as the file RECIPE says: train, halve, attack, audit, and write its card."""
    print(f"Made up to {config.until}: {make(recipe, name, config)}.")


def _halve(run: tyro.conf.Positional[Path], out: tyro.conf.Positional[Path], /, data: str | None = None) -> None:
    """Write the run OUT: the network of RUN in half precision, to be measured on DATA (else what it was trained on)."""
    about = halve(run, out, data=data)
    listed = ", ".join(f"{name} {value}" for name, value in about.items())
    print(
        f"Written to {out} ({listed}). Measure it with: {command(f'evaluate {shlex.quote(str(out))} --attacks strong')}"
    )


def _card(run: tyro.conf.Positional[Path], name: tyro.conf.Positional[str], /) -> None:
    """Put the halved and measured RUN among the shipped networks as NAME, with its card."""
    print(f"Written to {card(run, name)}.")
