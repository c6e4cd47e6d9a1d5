"""Exact projections of an attack, and the exact worst case of a linear classifier, for flat images (n,)."""

import numpy as np


def check_image(x: np.ndarray) -> None:
    """The image itself must be in the box, or the ball and the box need not meet."""
    if x.min() < 0 or x.max() > 1:
        raise ValueError(f"the image must lie in [0, 1], got {x.min()} to {x.max()}: rescale it first")


def project_linf(point: np.ndarray, x: np.ndarray, eps: float) -> np.ndarray:
    """The point nearest to `point` (n,) with |p - x| <= eps in each entry and p in [0,1]^n."""
    x, point = np.asarray(x, np.float64), np.asarray(point, np.float64)
    check_image(x)
    projected = np.zeros(len(x))
    for k in range(len(x)):
        # Ball and box are both intervals here, so their meet is one interval and clipping to it is exact.
        lowest = max(x[k] - eps, 0.0)
        highest = min(x[k] + eps, 1.0)
        projected[k] = min(max(point[k], lowest), highest)
    return projected


def project_l2(point: np.ndarray, x: np.ndarray, eps: float, halvings: int = 200) -> np.ndarray:
    """The point nearest to `point` (n,) with ||p - x|| <= eps and p in [0,1]^n.

    With multiplier mu >= 0 of the ball, p = clip((point + mu x) / (1 + mu), 0, 1), which is
    clip(x + s (point - x), 0, 1) with s = 1 / (1 + mu). ||p - x|| grows with s, so that the s at which it
    reaches eps is found by bisection.
    """
    x, point = np.asarray(x, np.float64), np.asarray(point, np.float64)
    check_image(x)

    def at(s: float) -> np.ndarray:
        return np.clip(x + s * (point - x), 0.0, 1.0)

    if np.linalg.norm(at(1.0) - x) <= eps:
        return at(1.0)
    inside, outside = 0.0, 1.0
    for _ in range(halvings):
        middle = (inside + outside) / 2
        if np.linalg.norm(at(middle) - x) <= eps:
            inside = middle
        else:
            outside = middle
    return at(inside)


def linear_worst_case(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, label: int, eps: float
) -> tuple[float, np.ndarray]:
    """Least margin z_label - z_other in the L-inf ball around x (n,) inside the box, and its place (n,).

    z = weight (2,n) @ x + bias (2,). The margin is a sum over entries, so that each entry is best moved on
    its own: as far as ball and box allow against the sign of its slope.
    """
    x, weight = np.asarray(x, np.float64), np.asarray(weight, np.float64)
    check_image(x)
    slope = weight[label] - weight[1 - label]
    worst = np.zeros(len(x))
    margin = float(bias[label] - bias[1 - label])
    for k in range(len(x)):
        if slope[k] > 0:
            worst[k] = max(x[k] - eps, 0.0)
        elif slope[k] < 0:
            worst[k] = min(x[k] + eps, 1.0)
        else:
            worst[k] = x[k]
        margin += float(slope[k] * worst[k])
    return margin, worst
