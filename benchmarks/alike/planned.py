"""The list of networks, what each is trained by, and about how long it takes beside the others."""

import itertools
from dataclasses import dataclass
from typing import Any

from benchmarks.alike.options import Options
from benchmarks.alike.settings import ATTACKED, EMA, SCALES, SETTINGS, Setting
from gammacaps.options import part_of_work
from gammacaps.paper.cost import dealt_by
from gammacaps.runs.train_config import TrainConfig

REACH = 1.5  # of an attack in training whose number of steps is told, in units of eps
ONE_STEP = 1.25  # of FGSM-RS
# A pass of capsules takes about twice that of the CNN with their convolutions: 34 and 18 ms for 64 images of the small
# scale on a CPU. In the measurements an image takes so many passes; after clean training few images stand for long.
CAPSULES = 2.0
ATTACK_PASSES, BEYOND_PASSES = 1000, 1000
AUDIT_PASSES = {"small": 5000, "deep": 10_000}  # of 16 and of 32 capsules
FALLEN = 0.3


@dataclass(frozen=True)
class Planned:
    """One network that is to be trained."""

    data: str
    network: str
    gamma: float
    trained: str
    seed: int

    @property
    def name(self) -> str:
        """Of its run's folder."""
        return f"{self.data}-{self.network}-gamma-{self.gamma:g}-{self.trained}-seed-{self.seed}"

    @property
    def setting(self) -> Setting:
        return SETTINGS[self.data]

    def asked(self, options: Options) -> dict[str, Any]:
        """What its row is known by."""
        return {**vars(self), **options.shared()}


def planned(options: Options) -> list[Planned]:
    """All networks that are asked for, each once: those of the first seed first, so that comparisons come early."""
    combined = itertools.product(options.seeds, options.data, options.trained, options.networks, options.gamma)
    several = (
        Planned(data, network, 0.0 if network == "CNN" else float(gamma), trained, seed)
        for seed, data, trained, network, gamma in combined
    )
    return list(dict.fromkeys(several))


def own_share(options: Options) -> list[Planned]:
    """Those that this process makes: of each seed its part, so that all processes come to the next seed together."""
    mine, parts = part_of_work(options.share)
    own: list[Planned] = []
    for turn, seed in enumerate(dict.fromkeys(options.seeds)):
        # The first parts are the largest: at every other seed they are the last ones'.
        part = parts + 1 - mine if turn % 2 else mine
        own += dealt_by(
            [one for one in planned(options) if one.seed == seed], lambda one: cost(one, options), part, parts
        )
    return own


def config_of(one: Planned, options: Options) -> TrainConfig:
    """How it is trained: all networks of a setting alike, but for what the network is."""
    network, training = SCALES[options.scale][one.network], dict(one.setting.training)
    if options.attack_steps is not None:
        reach = ONE_STEP if options.attack_steps == 1 else REACH
        step = round(reach * one.setting.eps / options.attack_steps, 6)
        training |= {"attack_steps": options.attack_steps, "attack_step": step}
    if options.eps_ramp is not None:
        training["eps_ramp"] = options.eps_ramp
    return TrainConfig(
        **training,
        preset=network.preset,
        routing=network.routing,
        model=network.changes,
        robust=one.trained == ATTACKED,
        gamma=one.gamma,
        steps=options.steps,
        batch=options.batch,
        lr=options.lr,
        ema=EMA,
        seed=one.seed,
        precision=options.precision,
        data_dir=options.data_dir,
        device=options.device,
        log_every=100,
        checkpoint_every=250,
    )


def cost(one: Planned, options: Options) -> float:
    """About how long training and measuring take, in passes of one image through the CNN."""
    config, capsules = config_of(one, options), one.network != "CNN"
    trained = options.steps * options.batch * (2 + (config.attack_steps if config.robust else 0))
    measured = options.images * ATTACK_PASSES + options.beyond * BEYOND_PASSES
    audited = options.audited * AUDIT_PASSES[options.scale] if capsules else 0
    return (trained + measured * (1 if config.robust else FALLEN) + audited) * (CAPSULES if capsules else 1)
