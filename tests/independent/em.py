"""EM routing of one capsule layer as Gritzman (2019) has it, loop by loop.

L parent positions, K children in a receptive field, J parent types, P pose entries (4x4, row-major).
"""

import math

import numpy as np

SMALL = 1e-9


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), written so that exp never overflows."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def receptive_fields(height: int, width: int, kernel: int, stride: int, types: int) -> np.ndarray:
    """Children (L,K) of each parent position, positions row-major, no padding.

    Child index = (row * width + col) * types + type; places k run over (kernel row, kernel col, type).
    """
    fields = []
    for top in range(0, height - kernel + 1, stride):
        for left in range(0, width - kernel + 1, stride):
            field = []
            for row in range(top, top + kernel):
                for col in range(left, left + kernel):
                    for kind in range(types):
                        field.append((row * width + col) * types + kind)
            fields.append(field)
    return np.array(fields)


def matrix_votes(poses: np.ndarray, weight: np.ndarray, children: np.ndarray) -> np.ndarray:
    """Votes (L,K,J,16) = pose (4x4) @ weight (4x4), for one image.

    From poses (n_children,16), weight (K,J,4,4) and children (L,K). Weights shared over positions, as the
    class capsules have them, are weight (types,J,4,4) repeated for each position.
    """
    # A product of two float32 would be rounded to float32 before it is summed.
    poses, weight = np.asarray(poses, np.float64), np.asarray(weight, np.float64)
    L, K = children.shape
    J = weight.shape[1]
    votes = np.zeros((L, K, J, 16))
    for l in range(L):
        for k in range(K):
            for j in range(J):
                for row in range(4):
                    for col in range(4):
                        total = 0.0
                        for inner in range(4):
                            total += poses[children[l, k], row * 4 + inner] * weight[k, j, inner, col]
                        votes[l, k, j, row * 4 + col] = total
    return votes


def coordinate_addition(votes: np.ndarray, height: int, width: int, types: int) -> np.ndarray:
    """Votes (...,K,J,16) of K = height*width*types children, with their place in the image added.

    (col + 0.5) / width is added to entry [0,3] and (row + 0.5) / height to entry [1,3] of each 4x4 vote.
    """
    added = np.array(votes, dtype=np.float64)
    for row in range(height):
        for col in range(width):
            for kind in range(types):
                k = (row * width + col) * types + kind
                for j in range(votes.shape[-2]):
                    added[..., k, j, 0 * 4 + 3] += (col + 0.5) / width
                    added[..., k, j, 1 * 4 + 3] += (row + 0.5) / height
    return added


def parents_of(children: np.ndarray) -> dict[int, list[tuple[int, int]]]:
    """For each child, the (l, k) at which it stands in the receptive fields `children` (L,K)."""
    places: dict[int, list[tuple[int, int]]] = {}
    for l in range(children.shape[0]):
        for k in range(children.shape[1]):
            places.setdefault(int(children[l, k]), []).append((l, k))
    return places


def em_routing(
    votes: np.ndarray,
    activations: np.ndarray,
    children: np.ndarray,
    beta_v: np.ndarray,
    beta_a: np.ndarray,
    iterations: int,
    final_lambda: float = 0.01,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """EM routing: poses (B,L,J,P), activations (B,L,J) and the R (B,L,K,J) of the last M-step.

    From votes (B,L,K,J,P), activations (B,n_children), children (L,K), beta_v (J,) and beta_a (J,).
    """
    if iterations < 1:
        raise ValueError(f"routing needs at least 1 iteration, got {iterations}")
    # A product of two float32 would be rounded to float32 before it is summed.
    votes, activations = np.asarray(votes, np.float64), np.asarray(activations, np.float64)
    B, L, K, J, P = votes.shape
    places = parents_of(children)
    R = np.zeros((B, L, K, J))
    for b in range(B):
        for l in range(L):
            for k in range(K):
                for j in range(J):
                    R[b, l, k, j] = 1 / (len(places[int(children[l, k])]) * J)

    mean = np.zeros((B, L, J, P))
    var = np.zeros((B, L, J, P))
    parent = np.zeros((B, L, J))
    for it in range(iterations):
        inverse_temperature = final_lambda * (1 - 0.95 ** (it + 1))
        for b in range(B):
            for l in range(L):
                for j in range(J):
                    mean[b, l, j], var[b, l, j], parent[b, l, j] = m_step(
                        votes[b, l, :, j],
                        [R[b, l, k, j] * activations[b, children[l, k]] for k in range(K)],
                        float(beta_v[j]),
                        float(beta_a[j]),
                        inverse_temperature,
                        J,
                    )
        if it < iterations - 1:
            for b in range(B):
                for standing in places.values():
                    e_step(R[b], votes[b], mean[b], var[b], parent[b], standing)
    return mean, parent, R


def m_step(
    votes: np.ndarray,
    shares: list[float],
    beta_v: float,
    beta_a: float,
    inverse_temperature: float,
    types: int,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean (P,), variance (P,) and activation of one parent, from votes (K,P) and shares R' = R * a (K)."""
    K, P = votes.shape
    total = sum(shares)
    mean = np.zeros(P)
    var = np.zeros(P)
    cost = 0.0
    for h in range(P):
        mean[h] = sum(shares[k] * votes[k, h] for k in range(K)) / (total + SMALL)
        var[h] = sum(shares[k] * (votes[k, h] - mean[h]) ** 2 for k in range(K)) / (total + SMALL) + SMALL
        cost += (beta_v + 0.5 * math.log(var[h])) * total * 100 / (K / types)
    return mean, var, sigmoid(inverse_temperature * (beta_a - cost))


def e_step(
    R: np.ndarray,
    votes: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    parent: np.ndarray,
    standing: list[tuple[int, int]],
) -> None:
    """Rewrite R (L,K,J) of one child, which stands at the places (l, k): a softmax over all its (l, j)."""
    _, _, J, P = votes.shape
    z = {}
    for l, k in standing:
        for j in range(J):
            log_p = 0.0
            for h in range(P):
                log_p -= (votes[l, k, j, h] - mean[l, j, h]) ** 2 / (2 * var[l, j, h])
                log_p -= 0.5 * math.log(2 * math.pi * var[l, j, h])
            z[l, k, j] = math.log(parent[l, j] + SMALL) + log_p
    # The largest z is taken out first: the densities themselves leave the range of a float.
    largest = max(z.values())
    total = sum(math.exp(value - largest) for value in z.values())
    for (l, k, j), value in z.items():
        R[l, k, j] = math.exp(value - largest) / total
