"""Why the network says what it says, in a sentence: the hidden capsules that lead to the answer, by their names."""

from typing import Any, TypeAlias

from gammacaps.auditing.capsule_names import rows_of
from gammacaps.auditing.kinds import GAMMA
from gammacaps.data.group_names import listed
from gammacaps.explain.tree import Node, Tree
from gammacaps.explorer.networks import Network

MOST = 3  # capsules that a sentence names, of those that lead to the answer
ABSENT = 2  # and of those that are not active

Called: TypeAlias = str | int  # a capsule's name, or its number


def why(tree: Tree, network: Network) -> dict[str, Any] | None:
    """A sentence for the predicted class and the hidden capsules that chose it, the strongest first.

    Of capsules that are not active it names those that stand for other classes; and one that is active and stands for
    the class, but gives its vote to another. Where no class capsule is active, it says that instead. None where no
    layer is hidden.
    """
    below = len(tree.layers) - 2
    if below < 1:
        return None
    nodes = tree.nodes_of(below)
    active = sorted((i for i, node in nodes.items() if node.active), key=lambda i: -strength(nodes[i]))
    led = [i for i in active if tree.ways[below, i] == tree.predicted]
    sets = class_sets(network, below)
    astray = [i for i in active if i not in led and tree.predicted in sets.get(i, ())]
    lengths = tree.layers[below].activations
    others = [i for i, own in sets.items() if lengths[i] <= tree.tau and tree.predicted not in own]
    others.sort(key=lambda i: lengths[i])
    # Those that stand for the class say more than those that happen to lead to it.
    said = sorted(led, key=lambda i: tree.predicted not in sets.get(i, ()))
    there, absent = (distinct([called(network, below, i) for i in some]) for some in (said, others))
    missing = [name for name in absent if name not in there][:ABSENT]
    words = unsure(tree) or f"{tree.class_names[tree.predicted]}, {because(there, missing)}{but(tree, astray, network)}"
    return {"words": words, "capsules": [[below, i] for i in led]}


def strength(node: Node) -> float:
    """How much of an active capsule's vote its parent gets."""
    return (node.coupling or 0.0) * node.activation


def but(tree: Tree, astray: list[int], network: Network) -> str:
    """That the strongest of these capsules, which stand for the answer, votes for something else; empty for none."""
    below = len(tree.layers) - 2
    if not astray or (other := tree.ways[below, astray[0]]) is None:
        return ""
    name = told([called(network, below, astray[0])])
    return f" {name[0].upper()}{name[1:]} is active too, but votes for {tree.class_names[other]}."


def unsure(tree: Tree) -> str:
    """That no class capsule is active, and what the answer then is worth; empty where one is."""
    longest = max(tree.layers[-1].activations)
    if longest > tree.tau:
        return ""
    return (
        f"No class capsule is active (longer than {tree.tau:g}): {tree.class_names[tree.predicted]} is named only "
        f"because something must be answered, and its capsule is the longest, {longest:.2f}."
    )


def because(there: list[Called], absent: list[Called]) -> str:
    if not there:
        return "the longest class capsule, though no active capsule chose it."
    mostly = "mainly " if len(there) > MOST else ""
    missing = f"; {told(absent)} {verb(absent)} not" if absent else ""
    return f"{mostly}because {told(there[:MOST])} {verb(there[:MOST])} active{missing}."


def verb(names: list[Called]) -> str:
    return "is" if len(names) == 1 else "are"


def told(some: list[Called]) -> str:
    """ "the capsules for shoes and tops and capsule 4": by name where there is one, else by number."""
    named = [one for one in some if isinstance(one, str)]
    numbered = [str(one) for one in some if isinstance(one, int)]
    parts = [f"the {plural(named)} for {joined(named)}"] if named else []
    parts += [f"{plural(numbered)} {joined(numbered)}"] if numbered else []
    return " and ".join(parts)


def plural(names: list[str]) -> str:
    return "capsule" if len(names) == 1 else "capsules"


def class_sets(network: Network, layer: int) -> dict[int, list[int]]:
    """The classes that each named capsule of a hidden layer stands for: the audit's, or else those of its training."""
    name = network.capsules.layers[layer]
    sets = {i: list(own) for i, own in enumerate(network.about.class_sets.get(name, ()))}
    sets |= {row["capsule"]: row["classes"] for row in rows_of(network.audit, name) if row["kind"] == GAMMA}
    return {i: own for i, own in sets.items() if (layer, i) in network.names}


def called(network: Network, layer: int, capsule: int) -> Called:
    return network.names.get((layer, capsule), capsule)


def distinct(names: list[Called]) -> list[Called]:
    return list(dict.fromkeys(names))


def joined(names: list[str]) -> str:
    """Names that hold commas or an "and" themselves are kept apart by quotes."""
    shown = [f"“{name}”" if len(names) > 1 and ("," in name or " and " in name) else name for name in names]
    return listed(shown)
