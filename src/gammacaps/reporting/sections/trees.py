"""How the network takes an image apart: parse trees, clean and attacked, each capsule at the same spot in both."""

from dataclasses import dataclass
from html import escape

from torch import Tensor

from gammacaps.explain.difference import difference
from gammacaps.explain.draw.figure import alternative, figure, heaviest, tell_difference
from gammacaps.explain.draw.layout import lay_out
from gammacaps.explain.draw.paths import colours_of
from gammacaps.explain.draw.svg import drawing
from gammacaps.explain.parsing import parse_trees
from gammacaps.explain.tree import Tree
from gammacaps.progress import say
from gammacaps.radius import radius
from gammacaps.reporting.content import Picture
from gammacaps.reporting.markup import paragraphs, picture, scrolling
from gammacaps.reporting.section import Section
from gammacaps.reporting.study import Study

ROOM = 3_500_000  # characters of drawings: with them the page stays under 5 MB


@dataclass(frozen=True, eq=False)
class AttackedPair:
    """One test image, and the same attacked, with both trees."""

    place: int  # in the test set
    label: int
    eps: float
    clean: Tree
    attacked: Tree


@dataclass(frozen=True)
class ShownTree:
    """The parse tree of one image, clean and, where it was attacked, attacked."""

    title: str
    clean: Picture
    clean_caption: str
    attacked: Picture | None = None
    attacked_caption: str = ""


@dataclass(frozen=True)
class ShownTrees:
    trees: tuple[ShownTree, ...]
    tau: float  # a capsule of a tree is active when it is longer


def collect(study: Study) -> ShownTrees | None:
    trees = trees_of(study, attacked_pairs(study))
    return ShownTrees(trees, study.tau) if trees else None


def attacked_pairs(study: Study) -> list[AttackedPair]:
    """Trees of the images of the first screen, one of a class, of some classes evenly spread."""
    if not study.config.trees:
        return []
    say("Taking test images apart ...")
    model, config, pictured = study.model, study.config, study.pictured
    firsts = [place for place, label in enumerate(pictured.labels) if label not in pictured.labels[:place]]
    count = min(config.trees, len(firsts))
    chosen = [firsts[place * len(firsts) // count] for place in range(count)]
    names = study.test.class_names
    clean, attacked = (
        parse_trees(model, images[chosen], tau=study.tau, class_names=names) if chosen else []
        for images in (pictured.clean, pictured.attacked)
    )
    return [
        AttackedPair(pictured.places[place], pictured.labels[place], pictured.eps, one, broken)
        for place, one, broken in zip(chosen, clean, attacked, strict=True)
    ]


def trees_of(study: Study, pairs: list[AttackedPair]) -> tuple[ShownTree, ...]:
    """As many as the page has room for: a network with thousands of capsules has large trees."""
    shown: list[ShownTree] = []
    room = ROOM
    for pair in pairs:
        one = shown_tree(study, pair)
        room -= sum(len(side.content) for side in (one.clean, one.attacked) if side is not None)
        if room < 0 and shown:
            break
        shown.append(one)
    return tuple(shown)


def shown_tree(study: Study, pair: AttackedPair) -> ShownTree:
    """Both trees drawn with each capsule at the same spot, hidden capsules by what activates them."""
    names = study.test.class_names
    clean, attacked = drawings(study, pair)
    taken = f"taken for {names[pair.clean.predicted]} ({pair.clean.scores[pair.clean.predicted]:.2f})"
    changed = tell_difference(pair.clean, difference(pair.clean, pair.attacked))
    return ShownTree(
        names[pair.label],
        Picture(clean, alternative(pair.clean)),
        f"Test image {pair.place}, clean: {names[pair.label]}, {taken}.",
        Picture(attacked, alternative(pair.attacked)),
        f"The same image attacked, eps {radius(pair.eps)}. {changed}",
    )


def drawings(study: Study, pair: AttackedPair) -> tuple[str, str]:
    trees = [pair.clean, pair.attacked]
    pictures = tree_pictures(study, pair.clean)
    layout = lay_out(trees, show_all=False, pictures=bool(pictures), names=study.names)
    common = (layout, colours_of(trees), heaviest(trees, layout), pictures)
    left = figure(pair.clean, *common, "clean")
    right = figure(pair.attacked, *common, "attacked", difference(*trees))
    size = (layout.width, layout.height)
    return drawing(*size, alternative(pair.clean), *left), drawing(*size, alternative(pair.attacked), *right)


def tree_pictures(study: Study, shown: Tree) -> dict[tuple[int, int], Tensor]:
    """Generated inputs by layer and capsule, as the drawing wants them."""
    places = {layer.name: index for index, layer in enumerate(shown.layers)}
    return {
        (places[name], capsule.index): capsule.generated.image
        for name, capsules in study.capsules.items()
        for capsule in capsules
    }


def draw(shown: ShownTrees) -> str:
    intro = paragraphs(
        "For each image the network couples capsules with those above them. Here are the capsules that are active "
        "and the parents that they chose, from the image on the left to the classes on "
        "the right: the network's own account of why it answered so. Below it is the same image after an attack, each "
        "capsule in the same spot. A robust network takes both apart in much the same way.",
        "A line is as wide as the coupling; one from the primary layer, as the couplings of all capsules of a place "
        "together. It has the colour of the class that it leads to in the end; grey is any further class, or none. "
        "Faint grey lines are weaker couplings. The fainter a capsule, the shorter it is; the bar under a picture is "
        "its length, too. Parents that are not active have a dashed frame.",
        "A hidden capsule's name is what it is active for, by the audit or, before there is one, as it was trained. "
        "In the attacked tree a capsule that changed its parent has a second frame, or as a dot an outline, and a "
        "dashed line leads to its former parent. One that appeared is marked “new”, or as a dot is a square. "
        "A cross is one that vanished. T, from 0 to 1, says how decidedly the capsules of a layer chose.",
        f"A capsule is active when it is longer than {shown.tau:g}.",
    )
    panels = "".join(draw_panel(tree) for tree in shown.trees)
    return f'{intro}<div data-tabs="Images">{panels}</div>'


def draw_panel(tree: ShownTree) -> str:
    sides = [(tree.clean, tree.clean_caption)]
    if tree.attacked is not None:
        sides.append((tree.attacked, tree.attacked_caption))
    figures = "".join(
        f"<figure>{scrolling(picture(shown, 'paper'), caption)}<figcaption>{escape(caption)}</figcaption></figure>"
        for shown, caption in sides
    )
    return f'<div class="panel"><h3>{escape(tree.title)}</h3>{figures}</div>'


TREES = Section("trees", "How it takes an image apart", collect, draw, needs=("capsules",))
