"""Scores, losses and intervals from their formulas, loop by loop."""

import itertools
import math

import numpy as np


def t_score(couplings: np.ndarray) -> float:
    """T = 1 - H_avg / log J (eq. metric_parse_tree) of couplings (M,I,J), with 0 log 0 = 0."""
    M, I, J = couplings.shape
    if J < 2:
        raise ValueError(f"the T-score needs at least 2 upper capsules, got {J}")
    entropy = 0.0
    for m in range(M):
        for i in range(I):
            for j in range(J):
                c = float(couplings[m, i, j])
                if c > 0:
                    entropy -= c * math.log(c)
    return 1 - entropy / (M * I) / math.log(J)


def d_score(activations: np.ndarray) -> float:
    """D (eq. metric_dynamicity): largest standard deviation (over M, not M - 1) of activations (M,J)."""
    M, J = activations.shape
    deviations = []
    for j in range(J):
        mean = sum(float(activations[m, j]) for m in range(M)) / M
        deviations.append(math.sqrt(sum((float(activations[m, j]) - mean) ** 2 for m in range(M)) / M))
    return max(deviations)


def d_score_batches(activations: np.ndarray, batch: int = 100) -> float:
    """Mean of the D-scores of consecutive batches of activations (M,J).

    An incomplete last batch is left out, unless it is the only one.
    """
    M = activations.shape[0]
    if batch > M:
        return d_score(activations)
    scores = []
    for start in range(0, M - batch + 1, batch):
        scores.append(d_score(activations[start : start + batch]))
    return sum(scores) / len(scores)


def margin_loss(lengths: np.ndarray, labels: np.ndarray) -> float:
    """Margin loss of Sabour et al. 2017 for lengths (B,N), labels (B,): sum over classes, mean over B."""
    B, N = lengths.shape
    total = 0.0
    for b in range(B):
        for n in range(N):
            v = float(lengths[b, n])
            if n == labels[b]:
                total += max(0.0, 0.9 - v) ** 2
            else:
                total += 0.5 * max(0.0, v - 0.1) ** 2
    return total / B


def spread_loss(activations: np.ndarray, labels: np.ndarray, margin: float) -> float:
    """Spread loss of Hinton et al. 2018 for activations (B,N), labels (B,): sum over n, mean over B."""
    B, N = activations.shape
    total = 0.0
    for b in range(B):
        target = float(activations[b, labels[b]])
        for n in range(N):
            if n != labels[b]:
                total += max(0.0, margin - (target - float(activations[b, n]))) ** 2
    return total / B


def wilson(correct: int, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of the share correct / count."""
    z = 1.959963984540054  # the normal distribution's 0.975 quantile
    share = correct / count
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return centre - half, centre + half


def rho(active: np.ndarray, labels: np.ndarray, classes: int) -> float:
    """Largest rho for which a capsule's feature is rho-useful (Definition 3.1), by trying all 2^N class sets.

    active (M,) bool and labels (M,): f(x) = e where the capsule is active, else 0, with e in {0,1}^N; the
    label y is N - 1 at its class and -1 elsewhere.
    """
    M = len(labels)
    best = -math.inf
    for e in itertools.product((0, 1), repeat=classes):
        total = 0
        for m in range(M):
            for n in range(classes):
                y = classes - 1 if n == labels[m] else -1
                f = e[n] if active[m] else 0
                total += y * f
        best = max(best, total / M)
    return best
