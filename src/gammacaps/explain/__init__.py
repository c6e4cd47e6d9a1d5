"""What capsules mean: inputs generated to activate them."""

from gammacaps.explain.activate import Generated, activate, activate_all

__all__ = ["Generated", "activate", "activate_all"]
