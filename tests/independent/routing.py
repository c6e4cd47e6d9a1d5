"""Routing by scaled-distance agreement (Algorithm 1) and by agreement (Sabour et al. 2017), loop by loop."""

import math

import numpy as np


def length(vector: np.ndarray) -> float:
    """Euclidean length ||vector||."""
    return math.sqrt(sum(float(entry) ** 2 for entry in vector))


def squash(s: np.ndarray) -> np.ndarray:
    """Algorithm 1, line 7: ||s||^2 / (1 + ||s||^2) * s / ||s||, for one vector (D,); zero stays zero."""
    norm = length(s)
    if norm == 0:
        return np.zeros_like(s, dtype=np.float64)
    return norm**2 / (1 + norm**2) * s / norm


def softmax(logits: list[float]) -> list[float]:
    """Algorithm 1, line 5, for one lower capsule: exp(b_j) / sum_k exp(b_k)."""
    # Subtracting the largest logit changes nothing but keeps exp from overflowing.
    largest = max(logits)
    powers = [math.exp(logit - largest) for logit in logits]
    return [power / sum(powers) for power in powers]


def sensitivity(parents: int, parent_distance: float, other_distance: float, coupling: float = 0.9) -> float:
    """Scale t of eq. (sensitivity): the nearest of `parents` capsules gets `coupling`, at these distances."""
    if parents < 2:
        raise ValueError(f"the scale t needs at least 2 upper capsules, got {parents}")
    return (math.log(coupling * (parents - 1)) - math.log(1 - coupling)) / (parent_distance - other_distance)


def make_votes(poses: np.ndarray, weight: np.ndarray, bounded: bool) -> np.ndarray:
    """Votes (B,I,J,D) = poses (B,I,d) @ weight (I,J,d,D); `bounded` cuts them to ||v_i|| (line 3)."""
    # A product of two float32 would be rounded to float32 before it is summed.
    poses, weight = np.asarray(poses, np.float64), np.asarray(weight, np.float64)
    B, I, _ = poses.shape
    _, J, d, D = weight.shape
    votes = np.zeros((B, I, J, D))
    for b in range(B):
        for i in range(I):
            for j in range(J):
                vote = np.zeros(D)
                for k in range(d):
                    vote = vote + poses[b, i, k] * weight[i, j, k]
                norm = length(vote)
                if bounded and norm > 0:
                    vote = min(length(poses[b, i]), norm) * vote / norm
                votes[b, i, j] = vote
    return votes


def upper_poses(votes: np.ndarray, couplings: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Algorithm 1, lines 6 and 7: poses (B,J,D) from votes (B,I,J,D), couplings (B,I,J) and bias (J,D)."""
    B, I, J, D = votes.shape
    poses = np.zeros((B, J, D))
    for b in range(B):
        for j in range(J):
            s = np.zeros(D) if bias is None else np.array(bias[j], dtype=np.float64)
            for i in range(I):
                s = s + couplings[b, i, j] * votes[b, i, j]
            poses[b, j] = squash(s)
    return poses


def couple(logits: np.ndarray) -> np.ndarray:
    """Algorithm 1, line 5: couplings (B,I,J) from logits (B,I,J), a softmax over the upper capsules j."""
    B, I, J = logits.shape
    couplings = np.zeros((B, I, J))
    for b in range(B):
        for i in range(I):
            couplings[b, i] = softmax([float(logits[b, i, j]) for j in range(J)])
    return couplings


def sda(
    poses: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    iterations: int,
    scale_over: str = "capsule",
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1: poses (B,I,d), weight (I,J,d,D), bias (J,D) or None -> poses (B,J,D), couplings (B,I,J).

    The mean distance of line 8 is over j for each capsule (`scale_over="capsule"`, as the paper has it), or
    one number over all b, i and j (`"batch"`). The couplings returned are those of the last s_j.
    """
    if scale_over not in ("capsule", "batch"):
        raise ValueError(f'scale_over must be "capsule" or "batch", got {scale_over!r}')
    if iterations < 1:
        raise ValueError(f"routing needs at least 1 iteration, got {iterations}")
    votes = make_votes(poses, weight, bounded=True)
    B, I, J, _ = votes.shape
    if J < 2:
        raise ValueError(f"the scale t needs at least 2 upper capsules, got {J}")
    logits = np.zeros((B, I, J))
    for _ in range(iterations):
        couplings = couple(logits)
        upper = upper_poses(votes, couplings, bias)

        distances = np.zeros((B, I, J))
        total = 0.0
        for b in range(B):
            for i in range(I):
                for j in range(J):
                    distances[b, i, j] = length(votes[b, i, j] - upper[b, j])
                    total += distances[b, i, j]

        for b in range(B):
            for i in range(I):
                mean = total / (B * I * J) if scale_over == "batch" else sum(distances[b, i]) / J
                for j in range(J):
                    if mean == 0:
                        # All parents agree perfectly: none is preferred, and t would be a division by zero.
                        logits[b, i, j] = 0.0
                    else:
                        t = (math.log(0.9 * (J - 1)) - math.log(1 - 0.9)) / (-0.5 * mean)
                        logits[b, i, j] = distances[b, i, j] * t
    return upper, couplings


def rba(
    poses: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Procedure 1 of Sabour et al. 2017: shapes as in `sda`, votes unbounded, b_ij += u_hat . v_j."""
    if iterations < 1:
        raise ValueError(f"routing needs at least 1 iteration, got {iterations}")
    votes = make_votes(poses, weight, bounded=False)
    B, I, J, D = votes.shape
    logits = np.zeros((B, I, J))
    for _ in range(iterations):
        couplings = couple(logits)
        upper = upper_poses(votes, couplings, bias)
        for b in range(B):
            for i in range(I):
                for j in range(J):
                    for k in range(D):
                        logits[b, i, j] += votes[b, i, j, k] * upper[b, j, k]
    return upper, couplings
