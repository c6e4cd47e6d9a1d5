"""What belongs to the tables and hangs on no training: what is possible on the data, and EM's T before any learning."""

from pathlib import Path
from typing import Any

import torch

from gammacaps.data import find, load_set
from gammacaps.evaluation.evaluate import balanced
from gammacaps.files import read_json, write_json
from gammacaps.metrics import t_score
from gammacaps.models import MatrixCapsConfig, MatrixCapsNet
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.expected import EPS
from gammacaps.paper.plan import DATA, limited
from gammacaps.paper.record import FACTS
from gammacaps.paper.upper_bound import between_classes, upper_bound

IMAGES = 5000  # test images of each set between which pairs are looked for
EM_IMAGES = 32
ITERATIONS = (1, 2, 3, 4)


def make_facts(options: ReproduceConfig) -> None:
    """Works them out once from as many images, where all data sets are at hand."""
    path = options.results_folder / FACTS
    images = limited(IMAGES, options)
    made = read_facts(options.results_folder)
    if made is not None and all(one["images"] >= (images or 0) for one in made["data"].values()):
        return
    if any(find(data, options.data_dir) is None for data in DATA):
        return
    by_data: dict[str, Any] = {}
    for data in DATA:
        test = load_set(data, "test", data_dir=options.data_dir)
        shown, labels = balanced(test, images)
        distances = between_classes(shown, labels)
        grey = labels.bincount().max().item() / len(labels)  # at eps 0.5 all can become the same image
        shares = {f"{eps:g}": min(upper_bound(distances, eps), grey if eps >= 0.5 else 1.0) for eps in EPS}
        by_data[data] = {"images": len(distances), "possible": shares}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"data": by_data, "em_T": em_T(options)})


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What was worked out before; None where there is nothing, or something else."""
    if not (folder / FACTS).exists():
        return None
    facts = read_json(folder / FACTS)
    parts = [facts.get(name) for name in ("data", "em_T")] if isinstance(facts, dict) else [None]
    known = all(isinstance(part, dict) for part in parts) and {*facts["data"]} == {*DATA}
    return facts if known else None


def em_T(options: ReproduceConfig) -> dict[str, float]:
    """The mean T of the layers of an untrained matrix capsule network on MNIST, by the iterations of EM."""
    images, _ = balanced(load_set("mnist", "test", data_dir=options.data_dir), EM_IMAGES)
    scores = {}
    for iterations in ITERATIONS:
        torch.manual_seed(0)
        model = MatrixCapsNet(MatrixCapsConfig(iterations=iterations)).eval()
        with torch.no_grad():
            parse = model.parse(images)
        T = [t_score(c, p) for c, p in zip(parse.couplings, parse.parents, strict=True) if c is not None]
        scores[str(iterations)] = round(torch.stack(T).mean().item(), 4) + 0.0  # no -0.0
    return scores
