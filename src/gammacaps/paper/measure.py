"""All that any table or figure needs of a trained run, worked out right after its training and kept small."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gammacaps.data import DataSet, load_set
from gammacaps.environment import pick_device
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced, balanced_places
from gammacaps.evaluation.run import FOLDER, evaluate_run
from gammacaps.explain.activate import Generated, activate_all
from gammacaps.explain.filters import first_filters
from gammacaps.explain.maps import activation_map
from gammacaps.explain.nothing import none_of_the_above
from gammacaps.explain.reconstruct import reconstruct
from gammacaps.models import CapsuleModel, GammaCapsNet, MatrixCapsNet, Model, load
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.expected import EPS
from gammacaps.paper.plan import QUICK_INPUTS, QUICK_SUITE, Planned, limited
from gammacaps.report.collect import ON_CPU, ON_GPU

MAP_IMAGES = 1000  # test images that an activation map draws from
Arrays = dict[str, np.ndarray]


def measure(run: Path, planned: Planned, options: ReproduceConfig) -> tuple[dict[str, Any], Arrays]:
    """Figures and arrays of a run as it stands, but for the strong attacks."""
    config = planned.config
    device = pick_device(options.device)
    test = load_set(config.data, "test", data_dir=config.data_dir, size=config.size)
    paper = EvaluateConfig(attacks=("paper",), eps=EPS, checks=False, **_common(planned, options, planned.images))
    figures: dict[str, Any] = {"results": _small(evaluate_run(run, paper)), "worst": [], "checks": [], "suite": []}
    arrays: Arrays = {}
    model = load(run, device=device)
    _look(model, test, figures, arrays)
    if planned.generate and isinstance(model, GammaCapsNet):
        made = QUICK_INPUTS if options.quick else ON_CPU if device.type == "cpu" else ON_GPU
        _generate(model, test, made, figures, arrays)
    return figures, arrays


def attack_strongly(
    run: Path, planned: Planned, options: ReproduceConfig, eps: float, images: int | None
) -> tuple[dict[str, list[Any]], Arrays]:
    """Figures that the suite at one radius adds, and image by image which stood under all of it."""
    config = planned.config
    test = load_set(config.data, "test", data_dir=config.data_dir, size=config.size)
    suite = ("fgsm", "pgd", *(QUICK_SUITE if options.quick else options.suite))
    checks = eps == config.eps and not options.quick
    common = _common(planned, options, images)
    found = evaluate_run(run, EvaluateConfig(attacks=suite, eps=(eps,), checks=checks, **common))
    rows = [{k: row[k] for k in ("attack", "eps", "accuracy", "interval")} for row in found["attacks"]]
    figures = {"worst": found["worst"], "checks": found.get("checks", []), "suite": rows, "skipped": found["skipped"]}
    return figures, {f"stood_{eps:g}": stood(run, test, eps, common["limit"], found["weights"])}


def _common(planned: Planned, options: ReproduceConfig, images: int | None) -> dict[str, Any]:
    few = pick_device(options.device).type == "cpu" or planned.config.preset == "matrix"
    where = {"data_dir": options.data_dir, "device": options.device}
    return {**where, "batch": 250 if few else 1000, "limit": limited(images, options)}


def stood(run: Path, test: DataSet, eps: float, limit: int | None, weights: str) -> np.ndarray:
    """Image by image: whether it is right under every attack at a radius, as packed bits, and so clean too."""
    places = balanced_places(test, limit)
    entries = [json.loads(path.read_text()) for path in (run / FOLDER).glob("*.json")]
    mine = [entry for entry in entries if entry["weights"] == weights and entry["attack"]["eps"] == eps]
    attacked, broken = set(), set()  # only what is right clean is attacked
    for entry in mine:
        attacked |= {int(place) for place in entry["predicted"]}
        broken |= {int(place) for place, answer in entry["predicted"].items() if answer != test.labels[int(place)]}
    return np.packbits(np.array([place in attacked and place not in broken for place in places.tolist()]))


def _small(results: dict[str, Any]) -> dict[str, Any]:
    """Without what names this machine's folders, and without what config.json and the record say already."""
    dropped = ("run", "model", "worst", "sweep", "skipped")
    kept = {name: value for name, value in results.items() if name not in dropped}
    kept["data"] = {**results["data"], "source": Path(results["data"]["source"]).name}
    kept["settings"] = {name: value for name, value in results["settings"].items() if name != "data_dir"}
    return kept


def _look(model: Model, test: DataSet, figures: dict[str, Any], arrays: Arrays) -> None:
    """The filters, where images of nothing fall, and the activation maps of the first hidden layer."""
    filters = first_filters(model)
    arrays["filters"] = filters.weights.to(torch.float16).numpy()
    figures["filters"] = {"largest_tenth": filters.mean_largest_tenth, "participation": filters.mean_participation}
    figures["nothing"] = none_of_the_above(model, class_names=test.class_names).to_json()
    if isinstance(model, CapsuleModel):
        images, labels = balanced(test, MAP_IMAGES)
        shown = activation_map(model, images, labels, by_type=isinstance(model, MatrixCapsNet))
        arrays["map_shuffled"], arrays["map_alone"] = (_bytes(x) for x in (shown.shuffled, shown.alone))
        figures["map"] = {"unit": shown.unit, "D_shuffled": shown.d_shuffled, "D_alone": shown.d_alone}


def _generate(
    model: GammaCapsNet, test: DataSet, made: tuple[int, int], figures: dict[str, Any], arrays: Arrays
) -> None:
    """Inputs for every class and hidden capsule (Algorithm 2), a test image of each class and its reconstruction."""
    starts, steps = made
    figures["generated"] = {"starts": starts, "steps": steps}
    first = torch.stack([test.images[test.labels == k][0] for k in range(len(test.class_names))])
    arrays["examples"] = _bytes(first)
    found: dict[str, list[Generated]] = {}
    for name, layer in (("class", "class"), ("hidden", model.layers[1])):
        found[name] = activate_all(model, layer, starts=starts, steps=steps, best=min(5, starts))
        arrays[f"generated_{name}"] = _bytes(torch.stack([one.image for one in found[name]]))
        figures["generated"][name] = [
            {"activation": round(one.activation, 4), "spread": round(one.spread, 4), "scores": _rounded(one.scores)}
            for one in found[name]
        ]
    if model.decoder is not None:
        shown = reconstruct(model, first, torch.arange(len(first)), generated=found["class"])
        arrays["reconstructions"] = _bytes(shown.reconstructions)
        assert shown.likeness is not None
        figures["generated"]["likeness"] = _rounded(shown.likeness)


def _bytes(images: Tensor) -> np.ndarray:
    return (images.detach().cpu().clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]
