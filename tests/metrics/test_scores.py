import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from independent import scores as loops

from gammacaps.errors import InputError
from gammacaps.metrics import DScore, TScore, d_score, t_score
from gammacaps.metrics.tree import t_scores


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(2, 7), st.floats(0.1, 30))
def test_t_is_the_paper_s_formula(M, I, J, sharpness):
    couplings = (torch.randn(M, I, J, dtype=torch.float64) * sharpness).softmax(-1)
    assert t_score(couplings).item() == pytest.approx(loops.t_score(couplings.numpy()), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 6))
def test_d_is_the_paper_s_formula(M, J):
    activations = torch.rand(M, J, dtype=torch.float64)
    assert d_score(activations).item() == pytest.approx(loops.d_score(activations.numpy()), abs=1e-7)


@pytest.mark.parametrize("count", [60, 100, 250, 300])
def test_d_over_batches_of_100_is_the_mean_of_their_scores(count):
    activations = torch.rand(count, 4, dtype=torch.float64) ** 3
    expected = loops.d_score_batches(activations.numpy(), 100)
    assert d_score(activations, batch_size=100).item() == pytest.approx(expected, abs=1e-9)


def test_the_ends_of_the_scales():
    assert t_score(torch.full((2, 3, 8), 1 / 8)).item() == pytest.approx(0, abs=1e-7)
    assert t_score(torch.eye(8).expand(2, 8, 8)).item() == 1
    assert d_score(torch.full((50, 3), 0.7)).item() == pytest.approx(0, abs=1e-8)
    assert d_score(torch.tensor([[0.0, 0.5], [1.0, 0.5]])).item() == 0.5


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 17), min_size=1, max_size=6), st.integers(0, 2**16))
def test_streaming_gives_the_whole_set_s_score_whatever_the_batches(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    couplings = torch.randn(sum(sizes), 4, 5, generator=generator).softmax(-1)
    activations = torch.rand(sum(sizes), 6, generator=generator)
    tree, dynamic = TScore(), DScore(6)
    for c, a in zip(couplings.split(sizes), activations.split(sizes), strict=True):
        tree.update(c)
        dynamic(a)  # forward also accumulates
    assert tree.compute().item() == pytest.approx(t_score(couplings).item(), abs=1e-12)
    assert dynamic.compute().item() == pytest.approx(d_score(activations).item(), abs=1e-8)


def _score_in_process(rank: int, world: int, port: int, queue) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    generator = torch.Generator().manual_seed(5)
    couplings = torch.randn(11, 4, 5, generator=generator).softmax(-1)
    activations = torch.rand(11, 6, generator=generator)
    part = slice(0, 7) if rank == 0 else slice(7, 11)  # parts of unequal size
    tree, dynamic = TScore(), DScore(6)
    tree.update(couplings[part])
    dynamic.update(activations[part])
    result = tree.compute().item(), dynamic.compute().item()
    queue.put((*result, t_score(couplings).item(), d_score(activations).item()))
    dist.destroy_process_group()


@pytest.mark.slow
def test_scores_merge_over_processes():
    import socket

    import torch.multiprocessing as mp

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_score_in_process, args=(rank, 2, port, queue), daemon=True) for rank in range(2)
    ]
    for process in processes:
        process.start()
    results = [queue.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    for t, d, whole_t, whole_d in results:
        assert t == pytest.approx(whole_t, abs=1e-12)
        assert d == pytest.approx(whole_d, abs=1e-8)


def test_a_capsule_that_sees_few_parents_is_measured_by_those():
    couplings = torch.zeros(1, 3, 8)
    couplings[0, 0, :4] = 0.25  # uniform over the 4 that it can reach
    couplings[0, 1, 5] = 1  # one parent of 8
    parents = torch.tensor([4, 8, 0])  # the third capsule reaches none and is left out
    assert t_score(couplings, parents).item() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: t_score(torch.ones(2, 3, 1)), "at least 2 upper capsules"),
        (lambda: t_score(torch.ones(0, 3, 4)), r"at least 1 example and 1 lower capsule .* not \(0, 3, 4\)"),
        (lambda: t_score(torch.ones(2, 0, 4)), "at least 1 example and 1 lower capsule"),
        (lambda: t_score(torch.ones(2, 3, 4), torch.tensor([1, 0, 1])), "can reach at least 2 parents"),
        (lambda: TScore().update(torch.ones(0, 3, 4)), "at least 1 example"),
        (lambda: TScore().compute(), "no T-score"),
        (lambda: d_score(torch.ones(0, 3)), "at least 1 example"),
        (lambda: d_score(torch.ones(3, 0)), "and 1 capsule"),
        (lambda: DScore(3).compute(), "no D-score of no examples"),
        (lambda: DScore(3).update(torch.ones(2, 4)), "is of 3 capsules, but was given 4"),
    ],
)
@pytest.mark.filterwarnings("ignore:The ..compute:UserWarning")  # torchmetrics' own, before any update
def test_what_can_t_be_scored_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_the_t_score_of_each_example_is_that_of_the_example_alone():
    couplings = torch.rand(4, 5, 3, generator=torch.Generator().manual_seed(0)).softmax(-1)
    parents = torch.tensor([3, 2, 1, 3, 2])
    alone = [t_score(each.unsqueeze(0), parents).item() for each in couplings]
    assert t_scores(couplings, parents).tolist() == pytest.approx(alone, abs=1e-12)
