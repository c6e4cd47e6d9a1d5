"""The independent implementations against cases worked out on paper; the working is in the comments."""

import itertools
import math

import numpy as np
import pytest

from . import attacks, em, routing, scores

approx = pytest.approx


# --- routing ---


def test_squash_of_3_4():
    # ||s|| = 5, so the length is 25/26 in the direction (3/5, 4/5).
    assert routing.squash(np.array([3.0, 4.0])) == approx(np.array([15 / 26, 20 / 26]))
    assert routing.squash(np.zeros(2)).tolist() == [0, 0]


# One lower capsule of pose 0.5 and two parents: the raw votes are 0.5 * 2 = 1 and 0.5 * 0.4 = 0.2.
POSES = np.array([[[0.5]]])
WEIGHT = np.array([[[[2.0]], [[0.4]]]])


def test_sda_one_lower_capsule_two_parents():
    # Line 3 cuts the first vote to 0.5 and leaves 0.2. Uniform couplings: s = (1/4, 1/10), v = (1/17, 1/101).
    poses, couplings = routing.sda(POSES, WEIGHT, None, iterations=1)
    assert couplings[0, 0] == approx([0.5, 0.5])
    assert poses[0, :, 0] == approx([1 / 17, 1 / 101])
    # Distances p = 1/2 - 1/17 = 15/34 and q = 1/5 - 1/101 = 96/505. t = -2 ln 9 / ((p + q)/2), so that
    # c_2 / c_1 = exp(t (q - p)) = 9^(4 (p - q)/(p + q)) = 32.97: c = (0.0294, 0.9706).
    p, q = 15 / 34, 96 / 505
    ratio = 9 ** (4 * (p - q) / (p + q))
    assert ratio == approx(32.97, abs=0.01)
    poses, couplings = routing.sda(POSES, WEIGHT, None, iterations=2)
    assert couplings[0, 0] == approx([1 / (1 + ratio), ratio / (1 + ratio)])
    # s = c * vote, and a squashed scalar is s^2 / (1 + s^2).
    s = np.array([0.5 / (1 + ratio), 0.2 * ratio / (1 + ratio)])
    assert poses[0, :, 0] == approx(s**2 / (1 + s**2))
    # The third round starts from b = t * distance alone: accumulating would add the second round's b to it.
    p, q = np.array([0.5, 0.2]) - s**2 / (1 + s**2)
    ratio = 9 ** (4 * (p - q) / (p + q))
    _, couplings = routing.sda(POSES, WEIGHT, None, iterations=3)
    assert couplings[0, 0, 1] == approx(ratio / (1 + ratio))


def test_rba_accumulates_and_does_not_bound():
    # Votes (1, 0.2): s = (1/2, 1/10), v = (1/5, 1/101), b = (1/5, 1/505), b_1 - b_2 = 20/101.
    _, couplings = routing.rba(POSES, WEIGHT, None, iterations=2)
    c = 1 / (1 + math.exp(-20 / 101))
    assert couplings[0, 0, 0] == approx(c)
    # Then s = (c, (1 - c)/5), and b_1 - b_2 grows by v_1 - v_2 / 5.
    first, second = c**2 / (1 + c**2), ((1 - c) / 5) ** 2 / (1 + ((1 - c) / 5) ** 2)
    poses, couplings = routing.rba(POSES, WEIGHT, None, iterations=3)
    c = 1 / (1 + math.exp(-(20 / 101 + first - second / 5)))
    assert couplings[0, 0, 0] == approx(c)
    assert poses[0, 0, 0] == approx(c**2 / (1 + c**2))


def sda_with_distances(*distances: float) -> np.ndarray:
    """Second-round couplings (J,) of one lower capsule whose first-round distances are these.

    Its votes are zero, so the distance to parent j is ||squash(bias_j)|| = bias^2 / (1 + bias^2).
    """
    bias = np.array([[math.sqrt(q / (1 - q))] for q in distances])
    J = len(distances)
    _, couplings = routing.sda(np.zeros((1, 1, 1)), np.ones((1, J, 1, 1)), bias, iterations=2)
    return couplings[0, 0]


@pytest.mark.parametrize("parents", [2, 3, 10, 32])
def test_the_scale_gives_the_parent_090(parents):
    # Eq. (sensitivity) itself: with d_p = d_o / 2 the softmax of t d is 0.9 exactly.
    t = routing.sensitivity(parents, 0.3, 0.6)
    assert routing.softmax([0.3 * t] + [0.6 * t] * (parents - 1))[0] == approx(0.9)
    # Line 8 puts the mean m of ALL distances, the parent's too, for d_o, so t = sensitivity(J, m/2, m). It is
    # 0.9 exactly where d_o - d_p = m/2, that is d_o = m (1 + 1/(2J)) and d_p = d_o - m/2.
    m = 0.4
    d_o = m * (1 + 1 / (2 * parents))
    assert sda_with_distances(d_o - m / 2, *[d_o] * (parents - 1))[0] == approx(0.9)
    # With d_p = d_o / 2 the mean is d_o (J - 1/2) / J, below d_o, and the coupling is a little over 0.9:
    # (1 - c) / c = (J - 1) (9 (J - 1))^(-J / (J - 1/2)).
    odds = (parents - 1) * (9 * (parents - 1)) ** (-parents / (parents - 0.5))
    c = sda_with_distances(0.3, *[0.6] * (parents - 1))[0]
    assert c == approx(1 / (1 + odds))
    assert 0.9 < c < 0.95


def test_sda_scale_over_the_batch_is_one_number():
    # One lower capsule, two parents of bias 1, two images. Image 0 (pose 0, votes 0): v = (1/2, 1/2),
    # distances 1/2 and 1/2. Image 1 (pose 1/2, weights 1 and 0, votes 1/2 and 0): s = (5/4, 1), v = (25/41,
    # 1/2), distances 9/82 and 1/2. Batch mean (3/2 + 9/82) / 4 = 33/82.
    poses = np.array([[[0.0]], [[0.5]]])
    weight = np.array([[[[1.0]], [[0.0]]]])
    bias = np.ones((2, 1))
    gap = 1 / 2 - 9 / 82
    for scale_over, mean in (("batch", 33 / 82), ("capsule", (9 / 82 + 1 / 2) / 2)):
        _, couplings = routing.sda(poses, weight, bias, 2, scale_over)
        assert couplings[0, 0] == approx([0.5, 0.5])
        assert couplings[1, 0, 0] == approx(1 / (1 + 9 ** (-2 * gap / mean)))


@pytest.mark.parametrize("scale_over", ["capsule", "batch"])
def test_sda_zero_input_stays_zero_and_uniform(scale_over):
    poses, couplings = routing.sda(np.zeros((2, 3, 4)), np.ones((3, 5, 4, 2)), None, 3, scale_over)
    assert np.all(poses == 0)
    assert couplings == approx(np.full((2, 3, 5), 1 / 5))


def test_votes_multiply_from_the_left_and_sum_over_lower_capsules():
    # (1, 2) @ [[1, 0, 0], [0, 0, 3]] = (1, 0, 6), of length sqrt(37) > sqrt(5): cut by sqrt(5/37).
    weight = np.array([[1.0, 0, 0], [0, 0, 3]])
    votes = routing.make_votes(np.array([[[1.0, 2]]]), weight[None, None], bounded=True)
    assert votes[0, 0, 0] == approx(np.array([1, 0, 6]) * math.sqrt(5 / 37))
    # Two lower capsules with votes (3/5, 0) and (0, 4/5) and bias (0, -4/5), couplings 1/2 and 1:
    # s = (3/10, 4/5 - 4/5) = (3/10, 0), v = 0.09 / 1.09.
    upper = routing.upper_poses(np.array([[[[0.6, 0]], [[0, 0.8]]]]), np.array([[[0.5], [1.0]]]), np.array([[0, -0.8]]))
    assert upper[0, 0] == approx([9 / 109, 0])


# --- EM routing ---


def test_receptive_fields():
    assert em.receptive_fields(3, 3, 2, 1, 1).tolist() == [
        [0, 1, 3, 4],
        [1, 2, 4, 5],
        [3, 4, 6, 7],
        [4, 5, 7, 8],
    ]
    # Rows of 3 places of 2 types: row 1 starts at child 6.
    assert em.receptive_fields(2, 3, 2, 1, 2).tolist() == [
        [0, 1, 2, 3, 6, 7, 8, 9],
        [2, 3, 4, 5, 8, 9, 10, 11],
    ]
    assert em.receptive_fields(5, 5, 3, 2, 1)[:, 0].tolist() == [0, 2, 10, 12]


def test_matrix_votes_multiply_pose_by_weight():
    # E_01 E_12 = E_02, and the other order would be zero.
    pose = np.zeros((2, 4, 4))
    weight = np.zeros((1, 1, 4, 4))
    pose[1, 0, 1] = 2
    weight[0, 0, 1, 2] = 3
    votes = em.matrix_votes(pose.reshape(2, 16), weight, np.array([[0], [1]]))
    assert votes.shape == (2, 1, 1, 16)
    assert np.flatnonzero(votes).tolist() == [16 + 2]
    assert votes[1, 0, 0, 2] == 6


def test_coordinate_addition():
    # A 2 x 4 image of 2 types: child (row 1, col 2, type 1) is k = (1*4 + 2)*2 + 1 = 13, at (1.5/2, 2.5/4).
    added = em.coordinate_addition(np.zeros((1, 16, 3, 16)), height=2, width=4, types=2)
    assert added[0, 13, 2, [3, 7]] == approx([0.625, 0.75])
    assert np.count_nonzero(added[0, 13, 2]) == 2


def test_m_step():
    # One parent, votes 0 and 2 of children of activation 1 and 1/2, R = 1: R' = (1, 1/2), sum 3/2, mean 2/3,
    # variance (4/9 + 16/18) / (3/2) = 8/9, cost (1 + ln(8/9)/2) * 3/2 * 100 / (2/1), lambda 0.01 * 0.05.
    poses, activations, R = em.em_routing(
        np.array([0.0, 2.0]).reshape(1, 1, 2, 1, 1),
        np.array([[1, 0.5]]),
        np.array([[0, 1]]),
        np.array([1.0]),
        np.array([2000.0]),
        iterations=1,
    )
    assert R.ravel() == approx([1, 1])
    assert poses.ravel() == approx([2 / 3])
    cost = (1 + math.log(8 / 9) / 2) * 75
    assert activations.ravel() == approx([1 / (1 + math.exp(-0.0005 * (2000 - cost)))])


def test_e_step_over_types():
    # Two children, votes -1, 1 for type 0 and -2, 2 for type 1: means 0, variances 1 and 4, so each child is
    # one standard deviation off in both and p_0 / p_1 = sqrt(4 / 1) = 2. Lambda 0 makes both activations 1/2.
    votes = np.array([[-1.0, -2.0], [1.0, 2.0]]).reshape(1, 1, 2, 2, 1)
    arguments = votes, np.ones((1, 2)), np.array([[0, 1]]), np.zeros(2), np.zeros(2)
    _, _, R = em.em_routing(*arguments, iterations=1, final_lambda=0)
    assert R[0, 0] == approx(np.full((2, 2), 1 / 2))
    _, _, R = em.em_routing(*arguments, iterations=2, final_lambda=0)
    assert R[0, 0] == approx(np.array([[2 / 3, 1 / 3]] * 2))


def test_e_step_over_positions():
    # Children 0, 1 | 1, 2 under two positions of one type: R of child 1 starts at 1/2, of the others at 1.
    # Position 0, votes 0 and 2: R' = (1, 1/2), mean 2/3, variance 8/9. Position 1, votes 4 and 0: R' = (1/2,
    # 1), mean 4/3, variance 32/9. Child 1 is off by (4/3)^2 / (2 * 8/9) = 1 and (8/3)^2 / (2 * 32/9) = 1
    # alike, so that its p_0 / p_1 = sqrt(32/8) = 2. Children 0 and 2 have one parent only and keep R = 1.
    votes = np.array([[0.0, 2.0], [4.0, 0.0]]).reshape(1, 2, 2, 1, 1)
    children = np.array([[0, 1], [1, 2]])
    arguments = votes, np.ones((1, 3)), children, np.zeros(1), np.zeros(1)
    _, _, R = em.em_routing(*arguments, iterations=1)
    assert R[0, :, :, 0] == approx(np.array([[1, 0.5], [0.5, 1]]))
    _, activations, R = em.em_routing(*arguments, iterations=2, final_lambda=0)
    assert R[0, :, :, 0] == approx(np.array([[1, 2 / 3], [1 / 3, 1]]))
    assert activations.ravel() == approx([0.5, 0.5])


def test_e_step_weighs_by_activation():
    # Both types get votes -1, 1: variance 1, and beta_v = 0 makes the cost 0. lambda beta_a = 0.0005 * 2000 =
    # 1 and -1: a_0 / a_1 = sigmoid(1) / sigmoid(-1) = e, so R = (e, 1) / (e + 1) = (sigmoid(1), sigmoid(-1)).
    votes = np.array([[-1.0, -1.0], [1.0, 1.0]]).reshape(1, 1, 2, 2, 1)
    beta_a = np.array([2000.0, -2000.0])
    _, _, R = em.em_routing(votes, np.ones((1, 2)), np.array([[0, 1]]), np.zeros(2), beta_a, iterations=2)
    assert R[0, 0] == approx(np.array([[em.sigmoid(1), em.sigmoid(-1)]] * 2))


# --- scores ---


def test_t_score():
    assert scores.t_score(np.full((2, 3, 4), 1 / 4)) == approx(0)
    assert scores.t_score(np.eye(4)[None]) == 1
    # H(0.9, 0.1) = 0.3251, over ln 2 = 0.6931: T = 0.5310; averaged with a one-hot capsule: (1 + 0.5310) / 2.
    assert scores.t_score(np.array([[[0.9, 0.1]]])) == approx(0.5310, abs=1e-4)
    assert scores.t_score(np.array([[[0.9, 0.1], [0, 1]]])) == approx(0.7655, abs=1e-4)


def test_d_score():
    # {0, 1}: mean 1/2, both 1/2 away. The constant capsule beside it does not count: the largest is taken.
    assert scores.d_score(np.array([[0.0, 0.7], [1.0, 0.7]])) == 0.5


def test_d_score_of_batches():
    # Batches of 2: {0, 1} has 1/2, {0, 0.5} has 1/4, the lone 9 is left out: mean 3/8.
    activations = np.array([0, 1, 0, 0.5, 9])[:, None]
    assert scores.d_score_batches(activations, 2) == approx(3 / 8)
    # The only batch is incomplete, and counts: {0, 1} has 1/2.
    assert scores.d_score_batches(activations[:2], 100) == 0.5


def test_losses():
    # Margin, label 0: (0.9 - 0.7)^2 + 0.5 (0.3 - 0.1)^2 + 0 = 0.06; label 2: 0 for the label, 0.5 (0.6^2 +
    # 0.2^2).
    lengths = np.array([[0.7, 0.3, 0.05], [0.7, 0.3, 0.95]])
    assert scores.margin_loss(lengths, np.array([0, 2])) == approx((0.06 + 0.2) / 2)
    # Spread, margin 1/2, label 0: gaps 0.4 and 0.65 to the others: (0.5 - 0.4)^2 + 0; label 2: gaps 0.25 and
    # 0.65.
    assert scores.spread_loss(lengths, np.array([0, 2]), 0.5) == approx((0.01 + 0.0625) / 2)


def test_wilson():
    # 50 of 100: 0.5 -+ half, where half = z/2 / sqrt(100 + z^2) = 0.0962. 10 of 10: from 10 / (10 + z^2) to
    # 1.
    assert scores.wilson(50, 100) == approx((0.4038, 0.5962), abs=1e-4)
    squared = 3.841458820694124  # z^2, the 0.95 quantile of chi-square with one degree of freedom
    assert scores.wilson(10, 10) == approx((10 / (10 + squared), 1))
    assert scores.wilson(0, 10) == approx((0, squared / (10 + squared)), abs=1e-12)


def test_rho():
    labels = np.array([0, 0, 1, 1])
    # Active on class 0 alone, e = (1, 0): y^(0) = 1 on two of four samples.
    assert scores.rho(labels == 0, labels, 2) == 0.5
    assert scores.rho(np.ones(4, bool), labels, 2) == 0
    # Three classes, one sample each, active on 0 and 1: e = (1, 1, 0) gives 2 - 1 = 1 on two of three.
    assert scores.rho(np.array([True, True, False]), np.array([0, 1, 2]), 3) == approx(2 / 3)


def test_rho_is_the_sum_of_the_useful_classes():
    # The maximum falls apart by class: e^(n) = 1 pays where N P(active, class n) > P(active).
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 30)
    active = rng.random(30) < 0.5
    together = [np.mean(active & (labels == n)) for n in range(4)]
    assert scores.rho(active, labels, 4) == approx(sum(max(0, 4 * p - np.mean(active)) for p in together))


# --- attacks ---


def test_linf_projection():
    x = np.array([0.05, 0.5, 0.95])
    assert attacks.project_linf(np.array([-1, 0.55, 2]), x, 0.1) == approx([0, 0.55, 1])
    assert attacks.project_linf(np.array([1, -1.0, 0]), x, 0.1) == approx([0.15, 0.4, 0.85])


def test_l2_projection():
    # x + s (1.2, 0.5) from (0.9, 0.5): the first entry stops at the box, 0.1 away, which leaves sqrt(0.5^2 -
    # 0.1^2) = sqrt(0.24) to the second. Scaling to the ball and then clipping would stop at 0.6923.
    x = np.array([0.9, 0.5])
    assert attacks.project_l2(np.array([2.1, 1.0]), x, 0.5) == approx([1, 0.5 + math.sqrt(0.24)])
    # Without the box in the way it is the plain ball: 0.1 along (3/5, 4/5).
    assert attacks.project_l2(np.array([0.8, 0.9]), np.array([0.5, 0.5]), 0.1) == approx([0.56, 0.58])
    # Without the ball in the way it is the plain box, and what is in both does not move.
    assert attacks.project_l2(np.array([2.0, 0.6]), x, 0.5) == approx([1, 0.6])


def test_l2_projection_makes_an_obtuse_angle_with_the_whole_set():
    # p is the projection of z onto a convex set if and only if (z - p) . (q - p) <= 0 for every q of the set.
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, z = rng.random(6), rng.normal(0.5, 1.5, 6)
        p = attacks.project_l2(z, x, 0.4)
        assert np.linalg.norm(p - x) <= 0.4 + 1e-12
        for _ in range(200):
            # Any point of the box, drawn towards x until it is in the ball, is in both; those near p bite
            # most.
            far = rng.choice([0.1, 3]) * rng.normal(0, 1, 6)
            q = np.clip((x if rng.random() < 0.5 else p) + far, 0, 1)
            q = x + (q - x) * min(1, 0.4 / np.linalg.norm(q - x))
            assert (z - p) @ (q - p) <= 1e-9


def test_linear_worst_case():
    # Slopes (1, -2, 0) for label 0: 0.05 -> 0 at the box, 0.5 -> 0.6, 0.3 stays: 0 - 1.2 + 1 = -0.2.
    weight, bias = np.array([[1.0, 0, 5], [0, 2, 5]]), np.array([1.0, 0])
    margin, worst = attacks.linear_worst_case(np.array([0.05, 0.5, 0.3]), weight, bias, 0, 0.1)
    assert margin == approx(-0.2)
    assert worst == approx([0, 0.6, 0.3])


def test_linear_worst_case_is_the_worst_corner():
    rng = np.random.default_rng(2)
    x, weight, bias = rng.random(5), rng.normal(size=(2, 5)), rng.normal(size=2)
    for label in (0, 1):
        corners = [np.clip(x + 0.3 * np.array(e), 0, 1) for e in itertools.product((-1, 1), repeat=5)]
        logits = [weight @ corner + bias for corner in corners]
        margin, worst = attacks.linear_worst_case(x, weight, bias, label, 0.3)
        assert margin == approx(min(z[label] - z[1 - label] for z in logits))
        assert attacks.project_linf(worst, x, 0.3) == approx(worst)
