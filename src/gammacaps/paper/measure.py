"""All that any table or figure needs of a trained run, worked out right after its training and kept small."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gammacaps.data import DataSet, load_set, open_set
from gammacaps.data.scaled import SPAN
from gammacaps.environment import pick_device
from gammacaps.evaluation.by_image import ByImage
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.evaluation.evaluate import balanced, evaluate
from gammacaps.evaluation.identity import identity
from gammacaps.evaluation.run import evaluate_run
from gammacaps.explain.activate import activate_all
from gammacaps.explain.filters import first_filters
from gammacaps.explain.maps import activation_map
from gammacaps.explain.none_of_the_above import none_of_the_above
from gammacaps.explain.reconstruct import reconstruct
from gammacaps.models import CapsuleModel, Model, has_capsules
from gammacaps.names import AttackLossName
from gammacaps.paper.config import ReproduceConfig
from gammacaps.paper.plan import PALE, PARTS, SCALED, TENTH, Planned, limited
from gammacaps.paper.record import AUTHORS, SUITE_BITS
from gammacaps.paper.trainings import QUICK_INPUTS, QUICK_SUITE
from gammacaps.progress import Progress
from gammacaps.reporting.study import ON_CPU, ON_GPU
from gammacaps.runs.run import Run
from gammacaps.training.held_back import split_off

AUTHORS_LOSS: AttackLossName = "ce"  # what PGD makes large in the authors' code
TENTH_STEP = 0.0025  # 40 of them cross the largest ball
SUITE = ("strong",)
MAP_IMAGES = 1000  # test images that an activation map draws from
Arrays = dict[str, np.ndarray]


def measure(run: Path, planned: Planned, options: ReproduceConfig) -> tuple[dict[str, Any], Arrays]:
    """Figures and arrays of a run as it stands, but for the strong attacks."""
    config = planned.config
    device = pick_device(options.device)
    test = load_set(config.data, "test", data_dir=config.data_dir, size=config.size)
    common = _common(planned, options, planned.images)
    papers: dict[str, Any] = {"eps": planned.radii, "checks": False, **common}
    if planned.data == SCALED:
        papers["attack_step"] = EvaluateConfig.attack_step / SPAN  # type: ignore[operator]  # 0.01 unless told
    arrays: Arrays = {}

    def evaluated(evaluate: EvaluateConfig, prefix: str = "") -> dict[str, Any]:
        by_image = ByImage()
        results = _evaluated(run, planned, evaluate, by_image)
        arrays.update(by_image.packed(_images_of(planned, test), prefix))
        return results

    results = _small(evaluated(EvaluateConfig(attacks=("paper",), **papers)))
    figures: dict[str, Any] = {"results": results, "worst": [], "checks": [], "skipped": []}
    if planned.name in (*PARTS["table2"], *PARTS["scaled"]):
        authors = EvaluateConfig(attacks=("pgd",), attack_loss=AUTHORS_LOSS, **papers)
        figures["authors"] = evaluated(authors, AUTHORS)["attacks"]
    if planned.data == PALE:
        tenth = {**papers, "eps": TENTH, "attack_step": TENTH_STEP}
        figures["tenth"] = evaluated(EvaluateConfig(attacks=("paper",), **tenth))["attacks"]
    model = Run(run).model(device)
    if planned.held_back:
        return figures, arrays
    _look(model, test, figures, arrays)
    if planned.generate and has_capsules(model):
        made = QUICK_INPUTS if options.quick else ON_CPU if device.type == "cpu" else ON_GPU
        _generate(model, test, made, figures, arrays)
    return figures, arrays


def _evaluated(run: Path, planned: Planned, config: EvaluateConfig, by_image: ByImage) -> dict[str, Any]:
    """The figures of a run on test images; of a trial of a recipe on the images that its training held back."""
    if not planned.held_back:
        return evaluate_run(run, config, by_image=by_image)
    train = planned.config
    whole = open_set(train.data, "train", data_dir=train.data_dir, size=train.size)
    _, held_back = split_off(whole, train)
    assert held_back is not None
    model = Run(run).model()
    results = evaluate(model, held_back, config, Progress(quiet=True), by_image=by_image)
    results["data"]["split"] = "held back from training"
    return {"weights": identity(model), "trained_steps": Run(run).steps, **results}


def _images_of(planned: Planned, test: DataSet) -> int:
    """How many images the set has whose places are told."""
    return planned.config.validate if planned.held_back else len(test.labels)


def attack_strongly(
    run: Path, planned: Planned, options: ReproduceConfig, eps: float, images: int | None
) -> tuple[dict[str, list[Any]], Arrays]:
    """Figures that the suite at one radius adds, and what became of each image."""
    checks = eps == planned.config.eps and not options.quick
    common = _common(planned, options, images)
    if planned.data == SCALED:
        common["attack_step"] = EvaluateConfig.attack_step / SPAN  # type: ignore[operator]  # as in `measure`
    config, by_image = EvaluateConfig(attacks=suite_of(options), eps=(eps,), checks=checks, **common), ByImage()
    results = evaluate_run(run, config, by_image=by_image)
    classes = [sum(row) for row in results["confusion"]]  # of the images that the suite had
    about = {"classes": classes, "attacks": [row["attack"] for row in results["attacks"]]}
    about["suite"] = list(config.named_attacks())  # those that can't run on the network among them
    worst = [{**row, **about} for row in results["worst"]]
    figures = {"worst": worst, "checks": results.get("checks", []), "skipped": results["skipped"]}
    test = load_set(planned.config.data, "test", data_dir=planned.config.data_dir, size=planned.config.size)
    return figures, by_image.packed(len(test.labels), SUITE_BITS)


def suite_of(options: ReproduceConfig) -> tuple[str, ...]:
    """The suites or attacks that the worst cases are over."""
    return ("fgsm", "pgd", *(options.suite or (QUICK_SUITE if options.quick else SUITE)))


def _common(planned: Planned, options: ReproduceConfig, images: int | None) -> dict[str, Any]:
    few = pick_device(options.device).type == "cpu" or planned.config.preset == "matrix"
    where = {"data_dir": options.data_dir, "device": options.device}
    return {**where, "batch": 250 if few else 1000, "limit": limited(images, options)}


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
    figures["filters"] = {"largest_tenth": filters.mean_largest_tenth}
    nothing = none_of_the_above(model, class_names=test.class_names)
    figures["nothing"] = {"classes": nothing.classes, "meaning": nothing.meaning}
    if has_capsules(model):
        images, labels = balanced(test, MAP_IMAGES)
        shown = activation_map(model, images, labels, by_type=model.grids[1] != (1, 1))
        arrays["map_shuffled"], arrays["map_alone"] = (_bytes(x) for x in (shown.shuffled, shown.alone))
        figures["map"] = {"unit": shown.unit, "D_shuffled": shown.d_shuffled, "D_alone": shown.d_alone}


def _generate(
    model: CapsuleModel, test: DataSet, made: tuple[int, int], figures: dict[str, Any], arrays: Arrays
) -> None:
    """Inputs for every class and hidden capsule (Algorithm 2), a test image of each class and its reconstruction."""
    starts, steps = made
    figures["generated"] = {"starts": starts, "steps": steps}
    first = torch.stack([test.images[test.labels == k][0] for k in range(len(test.class_names))])
    arrays["examples"] = _bytes(first)
    for name, layer in (("class", "class"), ("hidden", model.layers[1])):
        inputs = activate_all(model, layer, starts=starts, steps=steps, search="paper")
        arrays[f"generated_{name}"] = _bytes(torch.stack([one.image for one in inputs]))
        figures["generated"][name] = [
            {"activation": round(one.activation, 4), "scores": _rounded(one.scores)} for one in inputs
        ]
    if model.reconstructs:
        arrays["reconstructions"] = _bytes(reconstruct(model, first, torch.arange(len(first))).reconstructions)


def _bytes(images: Tensor) -> np.ndarray:
    return (images.detach().cpu().clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]
