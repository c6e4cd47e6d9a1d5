import math
from dataclasses import fields
from typing import Literal, get_origin

import numpy as np
import pytest
import torch

from gammacaps.auditing.config import AuditConfig
from gammacaps.bench.config import BenchConfig
from gammacaps.cli.options import DataCheckOptions, DataOptions, DemoOptions
from gammacaps.errors import InputError
from gammacaps.evaluation.config import EvaluateConfig
from gammacaps.explain.activate import activate
from gammacaps.explain.maps import activation_map
from gammacaps.explain.none_of_the_above import none_of_the_above
from gammacaps.explorer.config import ExploreConfig
from gammacaps.metrics.usefulness import chance_level
from gammacaps.models import create
from gammacaps.options import check_amount, check_eps, check_seed, check_tau, check_whole
from gammacaps.paper.config import ReproduceConfig
from gammacaps.reporting.config import ReportConfig
from gammacaps.runs.train_config import TrainConfig

CONFIGS = (
    TrainConfig,
    EvaluateConfig,
    AuditConfig,
    ReportConfig,
    ReproduceConfig,
    BenchConfig,
    ExploreConfig,
    DemoOptions,
)
# Every number that a command takes, by the configuration it is in.
NUMBERS = [
    (config, field.name, field.type)
    for config in CONFIGS
    for field in fields(config)
    if get_origin(field.type) is not Literal and any(kind in str(field.type) for kind in ("int", "float"))
]


@pytest.mark.parametrize(("config", "name", "kind"), NUMBERS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_no_option_takes_a_number_that_makes_no_sense(config, name, kind):
    wrong = [-1, 10**30, 10**5000] if "int" in str(kind) else [-1.0, math.nan, math.inf]
    for value in wrong:
        with pytest.raises(InputError, match=rf"^{name.rstrip('s')}s* must be .*, not .*\.$"):
            config(**{name: (value,) if "tuple" in str(kind) else value})


@pytest.mark.parametrize("config", [TrainConfig, EvaluateConfig, AuditConfig])
def test_an_attack_has_no_endless_number_of_steps(config):
    assert config(attack_steps=10_000).attack_steps == 10_000
    with pytest.raises(InputError, match="attack_steps must be at most 10,000, not 10001"):
        config(attack_steps=10_001)


def test_data_is_never_resized_to_nothing():
    for verb in (lambda size: DataOptions(size=size), lambda size: DataCheckOptions("fashion-mini", size=size)):
        for size in (0, -3, 2**40):
            with pytest.raises(InputError, match="size must be at"):
                verb(size)


@pytest.mark.parametrize("seed", [-1, 2**31, 10**99])
def test_one_check_of_seeds_for_all_that_is_random(seed):
    model, images, labels = create("small"), torch.rand(3, 1, 28, 28), torch.tensor([0, 1, 2])
    active = torch.rand(3, 4) > 0.5
    for work in (
        lambda: check_seed(seed),
        lambda: activate(model, "class", 0, starts=2, best=1, steps=1, seed=seed),
        lambda: activation_map(model, images, labels, seed=seed),
        lambda: none_of_the_above(model, seed=seed),
        lambda: chance_level(active, labels, 3, seed=seed),
    ):
        with pytest.raises(InputError, match=r"^seed must be from 0 to 2147483647, not "):
            work()


def test_numbers_that_can_be_used_pass():
    for seed in (0, 2**31 - 1, np.int64(3)):
        check_seed(seed)
    check_eps(0, 0.0, 1, np.float32(0.5))
    check_tau(0, 0.99)
    check_whole("limit", None)
    check_whole("limit", 2**31 - 1)
    check_amount("minutes", 0.01, zero=False)


@pytest.mark.parametrize("value", ["3", None, math.nan, True, [0.1], 1 + 1j])
def test_what_is_no_number_is_refused_as_a_number(value):
    for check in (check_eps, check_tau):
        with pytest.raises(InputError, match="must be"):
            check(value)
    with pytest.raises(InputError, match="seed must be from 0 to 2147483647, not "):
        check_seed(value)
    if value is not None:
        with pytest.raises(InputError, match="must be a whole number"):
            check_whole("limit", value)
