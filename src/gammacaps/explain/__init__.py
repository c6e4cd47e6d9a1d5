"""What capsules mean: inputs generated to activate them, parse trees, maps, and what a network takes nothing for.

>>> import gammacaps
>>> model, (images, _) = gammacaps.load("fashion-mini"), gammacaps.load_data("fashion-mini")
>>> made = gammacaps.explain.activate(model, "class", 8, starts=2, steps=3, best=1)
>>> made.image.shape
torch.Size([1, 28, 28])
>>> gammacaps.explain.parse_tree(model, images[0]).layers[-1].name
'class'
"""

from gammacaps.explain.ablation import without
from gammacaps.explain.activate import Generated, activate, activate_all
from gammacaps.explain.difference import Difference, difference
from gammacaps.explain.draw import draw, draw_pair, draw_routing
from gammacaps.explain.examples import classes_served, features, strongest
from gammacaps.explain.filters import first_filters
from gammacaps.explain.looks import looks_at, tinted
from gammacaps.explain.maps import activation_map, class_map, confusion_map, coupling_map
from gammacaps.explain.none_of_the_above import none_of_the_above
from gammacaps.explain.parsing import ParseTree, parse_tree, parse_trees, routing_trees
from gammacaps.explain.reconstruct import reconstruct
from gammacaps.explain.sheet import Sheet, sheet

__all__ = [
    "Difference",
    "Generated",
    "ParseTree",
    "Sheet",
    "activate",
    "activate_all",
    "activation_map",
    "class_map",
    "classes_served",
    "confusion_map",
    "coupling_map",
    "difference",
    "draw",
    "draw_pair",
    "draw_routing",
    "features",
    "first_filters",
    "looks_at",
    "none_of_the_above",
    "parse_tree",
    "parse_trees",
    "reconstruct",
    "routing_trees",
    "sheet",
    "strongest",
    "tinted",
    "without",
]
