"""Networks that learn toys from some viewpoints and are tested from others: `python -m benchmarks.viewpoints`.

smallNORB split by azimuth and by elevation as in Hinton, Sabour and Frosst (2018), for SDA, RBA, EM and a CNN. One line
of JSON a training goes to --out; what is there already is not trained again. Then come the tables, and a picture.
"""

import datetime
import functools
import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro

from benchmarks.routing import commit
from benchmarks.rows import read_rows
from benchmarks.viewpoints.compare import tables
from benchmarks.viewpoints.learn import LARGE, SMALL, Network, config_of, learn, some
from benchmarks.viewpoints.picture import draw
from gammacaps.data.viewpoints import ViewpointSplit, viewpoint_split
from gammacaps.environment import describe_machine
from gammacaps.errors import InputError, check_choice
from gammacaps.files import append_line
from gammacaps.memory import reuse_memory
from gammacaps.options import check_whole

NETWORKS = {"small": SMALL, "large": LARGE}
# The options that a training is known by.
ASKED = ("networks", "steps", "batch", "size", "every", "images")


@dataclass(frozen=True)
class Options:
    """Train on some viewpoints, test on the others, and compare networks where they are alike on the familiar ones."""

    out: Path = Path("viewpoints.jsonl")
    """File of the trainings, a line each; it grows."""
    picture: Path | None = None
    """Draw the picture here."""
    networks: Literal["small", "large"] = "small"
    """Networks for a CPU, or the preset deep, EM routing and a CNN of their full size for a GPU."""
    only: tuple[str, ...] = ()
    """Some of the networks alone: SDA, RBA, EM, CNN."""
    viewpoints: tuple[Literal["azimuth", "elevation"], ...] = ("azimuth", "elevation")
    """What tells familiar viewpoints from new ones."""
    seeds: tuple[int, ...] = (0, 1)
    """Seeds of weights and order; where toys are held out of the test split, of these too."""
    steps: int = 1600
    """Steps of each training."""
    batch: int = 32
    """Images a step."""
    every: int = 40
    """Steps between measurements."""
    images: int | None = None
    """Test images of familiar viewpoints, and twice as many of new ones; all unless told."""
    size: int = 28
    """Side of the images."""
    data_dir: str | None = None
    """Folder in which smallNORB lies, its -info files with it."""
    device: str = "auto"
    """auto, cpu, cuda."""


def run(options: Options) -> list[dict[str, Any]]:
    """The trainings that were asked for, those that were done before among them."""
    networks = NETWORKS[options.networks]
    for name in options.only:
        check_choice("network", name, networks)
    for name in ("steps", "batch", "every", "images", "size"):
        check_whole(name, getattr(options, name))
    there, rows = read_rows(options.out), []
    split_of = functools.lru_cache(1)(functools.partial(viewpoint_split, data_dir=options.data_dir, size=options.size))
    for seed, by, name in itertools.product(options.seeds, options.viewpoints, options.only or networks):
        asked = {"viewpoints": by, "network": name, "seed": seed} | {key: getattr(options, key) for key in ASKED}
        row = next((row for row in there if asked.items() <= row.items()), None)
        if row is None:
            row = {**asked, **trained(networks[name], split_of(by, seed=seed), seed, options)}
            append_line(options.out, json.dumps(row))
            print(f"{by}, {name}, seed {seed}: {row['seconds']:.0f} s", file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def trained(network: Network, split: ViewpointSplit, seed: int, options: Options) -> dict[str, Any]:
    """What a row tells of one training, and where and when it was made."""
    few = options.images
    parts = {"familiar": some(split.familiar, few, seed), "new": some(split.new, few and 2 * few, seed)}
    config = config_of(network, steps=options.steps, batch=options.batch, seed=seed, device=options.device)
    return {
        "preset": config.preset,
        "model": list(config.model),
        "protocol": split.protocol,
        "source": Path(split.train.data.source).name,
        **learn(config, split, parts, options.every),
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(options.device) | {"commit": commit()},
    }


def main() -> None:
    options = tyro.cli(Options, prog="python -m benchmarks.viewpoints", description=__doc__)
    reuse_memory()
    try:
        rows = run(options)
        print(tables(rows))
        if options.picture is not None:
            draw(rows, options.picture)
    except InputError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
