"""Generated inputs that a run's folder keeps: by which weights and options they were made, and as `Generated` again.

Report and explorer search for inputs in the same usual way, so that what one of them has made serves the other.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gammacaps.errors import InputError
from gammacaps.evaluation.identity import identity
from gammacaps.explain.activate import PENALTY, Generated, activate_all
from gammacaps.explain.search import SEARCHES
from gammacaps.explain.steady import noise_for
from gammacaps.models import CapsuleModel
from gammacaps.runs.inputs import INPUTS, LayerInputs, write_inputs
from gammacaps.runs.run import Run

SEARCH, SEED = "improved", 0
LEVELS = 255  # images are kept as bytes, as they are drawn
DTYPES = {"image": torch.uint8, "best": torch.uint8, "averaged": torch.int64, "seed": torch.int64}


def usual_way(layer: str, radius: float | None) -> dict[str, Any]:
    """How inputs for a layer of a network trained at this radius are searched where nothing else is asked for."""
    penalty = SEARCHES[SEARCH].class_penalty if layer == "class" else PENALTY
    return {"penalty": penalty, "search": SEARCH, "noise": noise_for(radius), "seed": SEED}


def inputs_of(
    run: Run,
    model: CapsuleModel,
    layer: str,
    capsules: Sequence[int],
    *,
    keep: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> list[Generated]:
    """What `activate_all` gives by these options, with pixels in steps of 1/255: from the run's folder if it is there.

    What is made anew is put there, unless `keep` is off or what is there was searched harder.
    """
    made = {"weights": identity(model), **options}
    kept = run.inputs().get(layer)
    if kept is None or not serves(kept, made, capsules):
        generated = activate_all(model, layer, capsules, on_progress=on_progress, **options)
        kept = LayerInputs(made, tuple(capsules), _tensors(generated))
        there = run.inputs()  # read again, since another process may have kept something in the meantime
        if keep and not (layer in there and harder(there[layer], kept)):
            write_inputs(run.folder, {**there, layer: kept})
    return generated_of(kept, capsules, model)


def harder(there: LayerInputs, new: LayerInputs) -> bool:
    """Whether inputs of the same weights in the same way have more starts, steps or capsules than new ones."""
    numbers = ("starts", "steps")
    ways = [{name: value for name, value in each.made.items() if name not in numbers} for each in (there, new)]
    more = any(there.made.get(name, 0) > new.made.get(name, 0) for name in numbers)
    return ways[0] == ways[1] and (more or not set(there.capsules) <= set(new.capsules))


def numbers_kept(run: Run, model: CapsuleModel, options: Mapping[str, Mapping[str, Any]]) -> tuple[int, int] | None:
    """Starts and steps of inputs that are kept for all capsules of these layers, made by these other options.

    None where they are not all there, or not all of the same numbers.
    """
    kept, weights, totals = run.inputs(), identity(model), dict(zip(model.layers, model.counts(), strict=True))
    numbers = set()
    for layer, asked in options.items():
        made = kept[layer].made if layer in kept else {}
        both = {"starts": made.get("starts"), "steps": made.get("steps")}
        if not made or not serves(kept[layer], {"weights": weights, **both, **asked}, range(totals[layer])):
            return None
        numbers.add((int(made["starts"]), int(made["steps"])))
    return numbers.pop() if len(numbers) == 1 else None


def serves(kept: LayerInputs, made: Mapping[str, Any], capsules: Iterable[int]) -> bool:
    """Whether inputs were made of the same weights by the same options, for all of these capsules."""
    return dict(kept.made) == dict(made) and set(capsules) <= set(kept.capsules)


def _tensors(generated: Sequence[Generated]) -> dict[str, Tensor]:
    rows = {
        "image": [_bytes(each.image) for each in generated],
        "best": [_bytes(each.best) for each in generated],
        "scores": [each.scores.float().cpu() for each in generated],
        "activations": [each.activations.float().cpu() for each in generated],
        "activation": [torch.tensor(each.activation, dtype=torch.float64) for each in generated],
        "spread": [torch.tensor(each.spread, dtype=torch.float64) for each in generated],
        "averaged": [torch.tensor(each.averaged) for each in generated],
        "seed": [torch.tensor(each.seed) for each in generated],
    }
    return {name: torch.stack(each) for name, each in rows.items()}


def _bytes(images: Tensor) -> Tensor:
    return (images.float().cpu() * LEVELS).round().clamp(0, LEVELS).to(torch.uint8)


def generated_of(kept: LayerInputs, capsules: Sequence[int], model: CapsuleModel) -> list[Generated]:
    """The inputs of these capsules; an error where what is kept does not fit the network."""
    tensors, shape = kept.tensors, tuple(model.image_shape)
    try:
        fits = tuple(tensors["image"].shape[1:]) == shape == tuple(tensors["best"].shape[2:])
        fits &= tuple(tensors["scores"].shape[1:]) == (model.classes,)
        fits &= tensors["activations"].shape == tensors["best"].shape[:2]
        fits &= all(tensors[name].dtype == dtype for name, dtype in DTYPES.items())
        place = {capsule: row for row, capsule in enumerate(kept.capsules)}
        if fits:
            return [_one(tensors, place[capsule]) for capsule in capsules]
    except (KeyError, IndexError, ValueError):
        pass
    raise InputError(
        f"The run's file {INPUTS} does not hold inputs of this network: remove it, and they are generated anew."
    )


def _one(tensors: Mapping[str, Tensor], row: int) -> Generated:
    return Generated(
        image=tensors["image"][row].float() / LEVELS,
        activation=tensors["activation"][row].item(),
        scores=tensors["scores"][row],
        best=tensors["best"][row].float() / LEVELS,
        activations=tensors["activations"][row],
        spread=tensors["spread"][row].item(),
        seed=int(tensors["seed"][row]),
        averaged=int(tensors["averaged"][row]),
    )
