"""Parse trees, clean and attacked, each capsule at the same spot in both."""

from torch import Tensor

from gammacaps.explain.draw.figure import alternative, figure, heaviest, tell_difference
from gammacaps.explain.draw.layout import lay_out
from gammacaps.explain.draw.paths import colours_of
from gammacaps.explain.draw.svg import drawing
from gammacaps.explain.tree import ParseTree, difference
from gammacaps.report.collect import Collected, Pair
from gammacaps.report.content import Picture, Tree

ROOM = 3_500_000  # characters of drawings: with them the page stays under 5 MB


def trees_of(found: Collected) -> tuple[Tree, ...]:
    """As many as the page has room for: a network with thousands of capsules has large trees."""
    shown: list[Tree] = []
    room = ROOM
    for pair in found.pairs:
        one = tree(found, pair)
        room -= sum(len(side.content) for side in (one.clean, one.attacked) if side is not None)
        if room < 0 and shown:
            break
        shown.append(one)
    return tuple(shown)


def tree(found: Collected, pair: Pair) -> Tree:
    """Both trees drawn with each capsule at the same spot, hidden capsules by what activates them."""
    names = found.test.class_names
    clean, attacked = drawings(found, pair)
    taken = f"taken for {names[pair.clean.predicted]} ({pair.clean.scores[pair.clean.predicted]:.2f})"
    changed = tell_difference(pair.clean, difference(pair.clean, pair.attacked))
    return Tree(
        names[pair.label],
        Picture(clean, alternative(pair.clean)),
        f"Test image {pair.place}, clean: {names[pair.label]}, {taken}.",
        Picture(attacked, alternative(pair.attacked)),
        f"The same image attacked, eps {pair.eps:g}. {changed}",
    )


def drawings(found: Collected, pair: Pair) -> tuple[str, str]:
    trees = [pair.clean, pair.attacked]
    pictures = tree_pictures(found, pair.clean)
    layout = lay_out(trees, show_all=False, pictures=bool(pictures))
    common = (layout, colours_of(trees), heaviest(trees, layout), pictures)
    left = figure(pair.clean, *common, "clean")
    right = figure(pair.attacked, *common, "attacked", difference(*trees))
    size = (layout.width, layout.height)
    return drawing(*size, alternative(pair.clean), *left), drawing(*size, alternative(pair.attacked), *right)


def tree_pictures(found: Collected, shown: ParseTree) -> dict[tuple[int, int], Tensor]:
    """Generated inputs by layer and capsule, as the drawing wants them."""
    places = {layer.name: index for index, layer in enumerate(shown.layers)}
    return {
        (places[name], capsule.index): capsule.generated.image
        for name, capsules in found.capsules.items()
        for capsule in capsules
    }
