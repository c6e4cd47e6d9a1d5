"""What a run's capsules look for and do, as files: pictures, and the figures behind them as JSON."""

import re
from typing import Any

from gammacaps.explain.difference import difference
from gammacaps.explain.draw import draw_pair, draw_routing
from gammacaps.explain.examples import classes_served
from gammacaps.explain.parsing import routing_trees
from gammacaps.explain.pictures import image_png, plain
from gammacaps.explain.sheet import Sheet, name_of
from gammacaps.reporting.sections.hidden import speaks_for
from gammacaps.reporting.sections.maps import MAP_KINDS
from gammacaps.reporting.sections.trees import attacked_pairs, tree_pictures
from gammacaps.reporting.study import BATCH, Shown, Study

# The names of the files of an explanation, of whichever network and with whichever options.
NAMES = re.compile(
    r"(class|hidden-\d+)-\d+\.png|tree-\d+\.(svg|json)|routing\.(svg|json)|capsules\.(png|json)|"
    rf"({'|'.join(kind.file for kind in MAP_KINDS)})\.(png|json)"
)


def files_of(study: Study) -> dict[str, Any]:
    """Names and contents: bytes of a picture, or the plain values of a JSON file.

    class-3.png, hidden-1-07.png     the input generated for a capsule
    capsules.png                     all of them on one sheet, with the classes that they serve
    capsules.json                    for each of them its length, its class scores and how many features it shows
    tree-1.svg, tree-1.json          the trees of an image, clean and attacked, and what changed
    routing.svg, routing.json        the first image's tree by routing's iterations
    confusion.png and .json and so on
    """
    files = _capsules(study)
    if study.has("capsules"):
        files |= _trees(study)
    for kind in MAP_KINDS:
        made = kind.make(study)
        if made is not None:
            files[f"{kind.file}.png"] = made.png()
            files[f"{kind.file}.json"] = made.to_json()
    return files


def _capsules(study: Study) -> dict[str, Any]:
    files: dict[str, Any] = {}
    listed: dict[str, list[Any]] = {}
    for layer, capsules in study.capsules.items():
        digits = len(str(study.totals[layer] - 1))
        for shown in capsules:
            name = f"{layer.replace(' ', '-')}-{shown.index:0{digits}}.png"
            files[name] = image_png(shown.generated.image)
            listed.setdefault(layer, []).append({"picture": name, **_numbers(shown)})
    if listed:
        files["capsules.json"] = {
            "class_names": list(study.test.class_names),
            "starts": study.made[0],
            "steps": study.made[1],
            "search": study.config.search,
            "class_penalty": study.config.class_penalty,
            "hidden_penalty": study.config.hidden_penalty,
            "layers": listed,
        }
        files["capsules.png"] = _sheet(study).png()
    return files


def _sheet(study: Study) -> Sheet:
    """With the names of the audit where it has some, else the classes whose test images make a capsule long."""
    layers = {}
    for layer, capsules in study.capsules.items():
        if layer == "class":
            names = dict(enumerate(study.test.class_names))
        else:
            served = classes_served(study.model, *study.chosen, layer, class_names=study.test.class_names, batch=BATCH)
            audited = {shown.index: speaks_for(study, layer, shown.index) for shown in capsules}
            names = {j: name or name_of(served, j) for j, name in audited.items()}
        layers[layer] = [(shown.index, names[shown.index], shown.generated) for shown in capsules]
    return Sheet(layers)


def _numbers(shown: Shown) -> dict[str, Any]:
    one = shown.generated
    return {
        "capsule": shown.index,
        "activation": round(one.activation, 4),
        "activations": plain(one.activations),
        "scores": plain(one.scores),
        "spread": round(one.spread, 4),
        "seed": one.seed,
        "features": shown.features.to_json(),
    }


def _trees(study: Study) -> dict[str, Any]:
    files: dict[str, Any] = {}
    pairs = attacked_pairs(study)
    for number, pair in enumerate(pairs, start=1):
        drawing = draw_pair(pair.clean, pair.attacked, pictures=tree_pictures(study, pair.clean), names=study.names)
        files[f"tree-{number}.svg"] = drawing.encode(errors="backslashreplace")
        files[f"tree-{number}.json"] = {
            "image": pair.place,
            "label": pair.label,
            "eps": pair.eps,
            "clean": pair.clean.to_json(),
            "attacked": pair.attacked.to_json(),
            "difference": difference(pair.clean, pair.attacked).to_json(),
        }
    if pairs:
        image = study.test.images[pairs[0].place].to(study.device)
        routing = routing_trees(study.model, image, tau=study.tau, class_names=study.test.class_names)
        pictures = tree_pictures(study, routing[-1])
        files["routing.svg"] = draw_routing(routing, pictures=pictures, names=study.names).encode(
            errors="backslashreplace"
        )
        files["routing.json"] = [tree.to_json() for tree in routing]
    return files
