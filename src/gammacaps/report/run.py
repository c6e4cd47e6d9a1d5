"""A run's page, and its pictures as files: `gammacaps report RUN` and `gammacaps explain RUN`."""

import re
from pathlib import Path
from typing import Any

from gammacaps.errors import InputError
from gammacaps.explain.draw import draw_pair, draw_routing
from gammacaps.explain.pictures import image_png, plain
from gammacaps.explain.tree import difference
from gammacaps.files import write_json, write_whole
from gammacaps.report.collect import Collected, Shown, collect
from gammacaps.report.config import ReportConfig
from gammacaps.report.fill import report_of
from gammacaps.report.fill.trees import tree_pictures
from gammacaps.report.page import render

PAGE, FOLDER = "report.html", "explain"
# The names of the files of an explanation, of whichever network and with whichever options.
NAMES = re.compile(
    r"(class|hidden-\d+)-\d+\.png|tree-\d+\.(svg|json)|routing\.(svg|json)|capsules\.json|(strongest|activation-map|class-map|classes-served|"
    r"coupling-map|confusion|filters|reconstruction|none-of-the-above)\.(png|json)"
)


def report_run(run: Path, config: ReportConfig) -> Path:
    """Looks into a run and writes its report.html; the page's path."""
    found = collect(run, config)
    write_whole(run / PAGE, render(report_of(found)).encode(errors="backslashreplace"))  # names of files
    return run / PAGE


def explain_run(run: Path, config: ReportConfig) -> Path:
    """Looks into a run and writes its pictures and figures as files into RUN/explain; the folder's path.

    Those of an earlier explanation go; other files that lie there stay.
    """
    found = collect(run, config)
    folder = run / FOLDER
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} can't be made a folder ({error.strerror}): move what is there.") from None
    files = files_of(found)
    for name, content in files.items():
        if isinstance(content, bytes):
            write_whole(folder / name, content)
        else:
            write_json(folder / name, content)
    for path in folder.iterdir():
        if NAMES.fullmatch(path.name) and path.name not in files:
            path.unlink()
    return folder


def files_of(found: Collected) -> dict[str, Any]:
    """Names and contents: bytes of a picture, or the plain values of a JSON file.

    class-3.png, hidden-1-07.png     the input generated for a capsule
    capsules.json                    for each of them its length, its class scores and how many features it shows
    tree-1.svg, tree-1.json          the trees of an image, clean and attacked, and what changed
    routing.svg, routing.json        the first image's tree by routing's iterations
    confusion.png and .json and so on
    """
    files: dict[str, Any] = {}
    listed: dict[str, list[Any]] = {}
    for layer, capsules in found.capsules.items():
        digits = len(str(found.totals[layer] - 1))
        for shown in capsules:
            name = f"{layer.replace(' ', '-')}-{shown.index:0{digits}}.png"
            files[name] = image_png(shown.generated.image)
            listed.setdefault(layer, []).append({"picture": name, **_numbers(shown)})
    if listed:
        files["capsules.json"] = {
            "class_names": list(found.test.class_names),
            "starts": found.made[0],
            "steps": found.made[1],
            "class_penalty": found.config.class_penalty,
            "hidden_penalty": found.config.hidden_penalty,
            "layers": listed,
        }
    for place, pair in enumerate(found.pairs, start=1):
        drawing = draw_pair(pair.clean, pair.attacked, pictures=tree_pictures(found, pair.clean))
        files[f"tree-{place}.svg"] = drawing.encode(errors="backslashreplace")
        files[f"tree-{place}.json"] = {
            "image": pair.place,
            "label": pair.label,
            "eps": pair.eps,
            "clean": pair.clean.to_json(),
            "attacked": pair.attacked.to_json(),
            "difference": difference(pair.clean, pair.attacked).to_json(),
        }
    if found.routing:
        pictures = tree_pictures(found, found.routing[-1])
        files["routing.svg"] = draw_routing(found.routing, pictures=pictures).encode(errors="backslashreplace")
        files["routing.json"] = [tree.to_json() for tree in found.routing]
    maps = {
        "strongest": found.strongest,
        "activation-map": found.activation,
        "class-map": found.means,
        "classes-served": found.served,
        "coupling-map": found.couplings,
        "confusion": found.confusion,
        "filters": found.filters,
        "reconstruction": found.reconstruction,
        "none-of-the-above": found.nothing,
    }
    for name, shown_map in maps.items():
        if shown_map is not None:
            files[f"{name}.png"] = shown_map.png()
            files[f"{name}.json"] = shown_map.to_json()
    return files


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
