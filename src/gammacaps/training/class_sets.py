"""Which classes each hidden capsule shall speak for: sets of classes that look alike, so that people can name them.

The sets are chosen once, from the mean images of the classes, before training: each class alone, the groups in which
classes that look alike join (all clothes, those with sleeves), and each class with its nearest neighbours. Of these,
capsule by capsule, the set is taken that tells apart the most pairs of classes that few sets have told apart so far,
where a pair counts for less the less the classes of the set look alike.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from gammacaps.data import DataSet, StoredSet
from gammacaps.models import Model, has_capsules

ClassSets = dict[str, tuple[tuple[int, ...], ...]]  # by hidden layer: the classes of each capsule

NEIGHBOURS = (2, 3, 4)  # classes in the groups of nearest neighbours
MOST_IMAGES = 20_000  # looked at, over all classes
A_CLASS = 100  # and of each class
LEAST_ALIKE = 0.02  # what a set counts for whose classes are no more alike than others
SIDE = 28  # to which larger images are shrunk


def class_sets(model: Model, data: DataSet | StoredSet) -> ClassSets:
    """The sets of all hidden capsules of a network, layer by layer; empty for a network without hidden capsules."""
    if not has_capsules(model) or len(model.layers) < 3:
        return {}
    means = class_means(data)
    hidden = zip(model.layers[1:-1], model.counts()[1:-1], strict=True)
    return {layer: tuple(map(_numbers, natural_sets(means, count))) for layer, count in hidden}


def class_means(data: DataSet | StoredSet) -> Float[Tensor, "N F"]:
    """The mean image of each class; black where a class has no images."""
    classes = len(data.class_names)
    most = max(1, min(A_CLASS, MOST_IMAGES // classes))
    means = []
    for label in range(classes):
        own = (data.labels == label).nonzero().squeeze(1)[:most]
        images = data.images[own] if len(own) else torch.zeros(1, *data.images.shape[1:])
        means.append(images.double().mean(0))
    pixels = torch.stack(means)  # N C H W
    if max(pixels.shape[2:]) > SIDE:
        pixels = adaptive_avg_pool2d(pixels, SIDE)
    return pixels.flatten(1)


def natural_sets(means: Float[Tensor, "N F"], count: int) -> Bool[Tensor, "J N"]:
    """Class sets for `count` capsules: none is empty or of all classes, and all classes are told apart if they can be.

    They repeat only where there are no more.
    """
    shapes = _shapes(means)
    distance = torch.cdist(shapes, shapes)
    order, groups = _joined(distance)
    candidates = candidate_sets(distance, groups).to(means)  # C N
    outside, alike = 1 - candidates, likeness(candidates, distance)
    apart = means.new_zeros(len(means), len(means))  # N N: how many sets so far tell two classes apart
    left = list(range(len(candidates)))
    chosen: list[Tensor] = []  # each N
    while len(chosen) < count:
        left = left or list(range(len(candidates)))
        same = _not_told_apart(apart, order)
        if math.ceil(math.log2(len(max(same, key=len)))) >= count - len(chosen):  # halves are the surest way from here
            members = means.new_zeros(len(means))
            members[[label for labels in same for label in labels[: len(labels) // 2]]] = 1
        else:
            # Summed over the pairs of classes that a set tells apart.
            gain = ((candidates[left] @ (1 + apart).pow(-2)) * outside[left]).sum(1) * alike[left]
            best = left.pop(int((gain > gain.max() * (1 - 1e-6)).nonzero()[0]))  # the first of equals, but for rounding
            members = candidates[best]
        chosen.append(members)
        split = torch.outer(members, 1 - members)
        apart += split + split.T
    return torch.stack(chosen).bool()


def likeness(sets: Float[Tensor, "C N"], distance: Float[Tensor, "N N"]) -> Float[Tensor, "C"]:
    """1 for a single class; else how much nearer the classes of a set are to each other than to those outside."""
    size, rest = sets.sum(1), (1 - sets).sum(1)
    inside = ((sets @ distance) * sets).sum(1) / (size * (size - 1)).clamp_min(1)
    across = ((sets @ distance) * (1 - sets)).sum(1) / (size * rest)
    return (1 - inside / across.clamp_min(1e-12)).clamp_min(LEAST_ALIKE)


def candidate_sets(distance: Float[Tensor, "N N"], groups: list[frozenset[int]]) -> Bool[Tensor, "C N"]:
    """Single classes, the groups in which classes join, and each class with its nearest."""
    classes = len(distance)
    sets = [frozenset([label]) for label in range(classes)] + groups
    nearest = distance.argsort(dim=1, stable=True).tolist()
    for size in NEIGHBOURS:
        sets += [frozenset(labels[:size]) for labels in nearest]
    different = [members for members in dict.fromkeys(sets) if len(members) < classes]
    table = torch.zeros(len(different), classes, dtype=torch.bool)
    for row, members in enumerate(different):
        table[row, list(members)] = True
    return table


def _shapes(means: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
    """The mean images without their brightness and contrast: a dark shirt is still a shirt."""
    centred = means - means.mean(1, keepdim=True)
    return centred / centred.norm(dim=1, keepdim=True).clamp_min(1e-12)


def _joined(distance: Float[Tensor, "N N"]) -> tuple[list[int], list[frozenset[int]]]:
    """The classes, those alike side by side, and the groups in which the two nearest join (average linkage)."""
    classes = len(distance)
    between = distance.clone().fill_diagonal_(torch.inf)  # mean distances of groups, each at its first class
    members = [[label] for label in range(classes)]
    groups = []
    for _ in range(classes - 1):
        first, second = sorted(divmod(int(between.argmin()), classes))
        a, b = len(members[first]), len(members[second])
        mean = (a * between[first] + b * between[second]) / (a + b)
        between[first], between[:, first] = mean, mean
        between[second], between[:, second] = torch.inf, torch.inf
        between[first, first] = torch.inf
        members[first] += members[second]
        groups.append(frozenset(members[first]))
    return members[0], groups


def _not_told_apart(apart: Float[Tensor, "N N"], order: list[int]) -> list[list[int]]:
    """The classes in groups that no set so far tells apart."""
    same: dict[tuple[bool, ...], list[int]] = {}
    for label, row in zip(order, (apart[order] > 0).tolist(), strict=True):
        same.setdefault(tuple(row), []).append(label)
    return list(same.values())


def _numbers(members: Bool[Tensor, "N"]) -> tuple[int, ...]:
    return tuple(members.nonzero().squeeze(1).tolist())
