"""Maps and other pictures, each with a caption that says what to see: one table for the page and for files."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from gammacaps.explain.examples import Served, Strongest, classes_served, strongest
from gammacaps.explain.filters import Filters, first_filters
from gammacaps.explain.maps import (
    ActivationMap,
    ClassMap,
    Confusion,
    CouplingMap,
    activation_map,
    class_map,
    confusion_map,
    coupling_map,
)
from gammacaps.explain.none_of_the_above import NoneOfTheAbove, none_of_the_above
from gammacaps.explain.pictures import dark_paper
from gammacaps.explain.reconstruct import Reconstruction, reconstruct
from gammacaps.models import CapsuleModel, shows_capsules
from gammacaps.progress import say
from gammacaps.reporting.content import Figure, Picture
from gammacaps.reporting.markup import figure
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import BATCH, Study


class Picturable(Protocol):
    """What can be a picture and a file of numbers."""

    def png(self) -> bytes: ...

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class MapKind:
    """A kind of map: the name of its files, how it is made of a run, and how the page shows it."""

    file: str
    make: Callable[[Study], Picturable | None]  # None where the run does not have it
    show: Callable[[Any], Figure] | None  # None where it is for a file alone


def make_confusion(study: Study) -> Confusion | None:
    results = study.results
    return confusion_map(results["confusion"], results["class_names"]) if results else None


def show_confusion(shown: Confusion) -> Figure:
    return Figure(
        "Which classes are mixed up",
        Picture(shown.png(), f"Confusion matrix. {shown.meaning}"),
        f"A row a true class, a column what its images were taken for. {shown.meaning}",
    )


def with_hidden(study: Study) -> CapsuleModel | None:
    """The network, if it has hidden capsules that can be shown."""
    model = study.model
    return model if shows_capsules(model) and len(model.layers) > 2 else None


def common(study: Study) -> dict[str, Any]:
    """The options that all maps of hidden capsules have."""
    return {"class_names": study.test.class_names, "batch": BATCH}


def make_strongest(study: Study) -> Strongest | None:
    """The test images that activate the first hidden layer's capsules most."""
    if (model := with_hidden(study)) is None:
        return None
    (images, _), layer = study.chosen, model.layers[1]
    numbers = [shown.index for shown in study.capsules[layer]]
    return strongest(model, images, layer, numbers, min(8, len(images)), batch=BATCH)


def make_activation(study: Study) -> ActivationMap | None:
    if (model := with_hidden(study)) is None:
        return None
    images, labels = study.chosen
    label = int(labels.unique()[0])
    return activation_map(model, images, labels, label=label, seed=study.config.seed, **common(study))


def show_activation(shown: ActivationMap) -> Figure:
    return Figure(
        "Do hidden capsules follow the image?",
        Picture(shown.png(with_d=False), f"Activation map of the layer {shown.layer}"),
        "A row an image, a column a capsule, bright where it is active. Stripes that run through all "
        "images of one class, and change between classes, are capsules that follow the image: the "
        "D-score is their measure.",
    )


def make_means(study: Study) -> ClassMap | None:
    model = with_hidden(study)
    return None if model is None else class_map(model, *study.chosen, **common(study))


def show_means(shown: ClassMap) -> Figure:
    return Figure(
        "Which capsules a class uses",
        Picture(shown.png(), f"Mean activation of the {shown.layer} capsules by class"),
        "The stronger the blue, the longer the capsule is on average over the test images of that class.",
    )


def make_served(study: Study) -> Served | None:
    model = with_hidden(study)
    return None if model is None else classes_served(model, *study.chosen, tau=study.tau, **common(study))


def make_couplings(study: Study) -> CouplingMap | None:
    model = with_hidden(study)
    return None if model is None else coupling_map(model, study.chosen[0], **common(study))


def show_couplings(shown: CouplingMap) -> Figure:
    return Figure(
        "Where capsules lead",
        Picture(shown.png(), f"Couplings from {shown.layer} to {shown.above}"),
        "How much of each capsule goes to each capsule above, over all test images. A column with one "
        "strong cell is a capsule that always has the same parent.",
    )


def make_none_of_the_above(study: Study) -> NoneOfTheAbove:
    say("Looking at what it makes of noise ...")
    names, seed = study.test.class_names, study.config.seed
    return none_of_the_above(study.model, study.others, class_names=names, seed=seed)


def show_none_of_the_above(shown: NoneOfTheAbove) -> Figure:
    return Figure(
        "What it makes of nothing",
        Picture(shown.png(), f"What noise and blank images are taken for. {shown.meaning}"),
        shown.meaning,
    )


def make_reconstruction(study: Study) -> Reconstruction | None:
    """Of the first test image of each class, beside the inputs that were generated."""
    model, capsules, (images, labels) = study.model, study.capsules, study.chosen
    if capsules and model.reconstructs:
        present = labels.unique().tolist()
        first = torch.stack([images[labels == k][0] for k in present])
        generated = [capsules["class"][k].generated for k in present]
        names = study.test.class_names
        return reconstruct(model, first, torch.tensor(present), generated=generated, class_names=names)
    return None


def show_reconstruction(shown: Reconstruction) -> Figure:
    return Figure(
        "What the decoder makes of it",
        Picture(shown.png(), "Test images, their reconstructions and the generated inputs"),
        "A second network draws the image again from the class capsule alone. It shows what images of the "
        "class look like, not what activates the capsule: for that, trust the generated inputs in the last "
        "row.",
    )


def make_filters(study: Study) -> Filters:
    return first_filters(study.model)


def show_filters(shown: Filters) -> Figure:
    tints = "Vermillion is positive, blue negative."
    if shown.weights.shape[1] == 3:
        tints = "Each filter is shown as a colour image: grey is 0."
    return Figure(
        "The first filters",
        Picture(shown.png(), f"The {len(shown.weights)} filters of the first convolution"),
        f"{tints} {shown.meaning} The paper reports that training under attack concentrates them.",
    )


MAP_KINDS = (  # in the page's order
    MapKind("confusion", make_confusion, show_confusion),
    MapKind("strongest", make_strongest, None),  # the page has them on the cards of capsules
    MapKind("activation-map", make_activation, show_activation),
    MapKind("class-map", make_means, show_means),
    MapKind("classes-served", make_served, None),
    MapKind("coupling-map", make_couplings, show_couplings),
    MapKind("none-of-the-above", make_none_of_the_above, show_none_of_the_above),
    MapKind("reconstruction", make_reconstruction, show_reconstruction),
    MapKind("filters", make_filters, show_filters),
)


def collect(study: Study) -> tuple[Figure, ...]:
    return tuple(
        on_both_papers(kind.show, made)
        for kind in MAP_KINDS
        if kind.show is not None and (made := kind.make(study)) is not None
    )


def on_both_papers(show: Callable[[Any], Figure], made: Any) -> Figure:
    with dark_paper():
        dark = show(made).picture
    return replace(show(made), dark=dark)


def draw(shown: tuple[Figure, ...]) -> str:
    return "".join(figure(each) for each in shown)


MAPS = Section("maps", "Further maps", collect, draw)
