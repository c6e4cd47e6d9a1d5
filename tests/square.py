"""A network whose capsules are known by hand."""

import torch
from former_small import CONVOLUTION

import gammacaps


def square_detector():
    """Three hidden capsules: one as long as the upper left square is bright, one that is zero, one always at 0.5."""
    convolution = {**CONVOLUTION, "filters": 1, "kernel": 4, "stride": 1}
    one_place = {**convolution, "image_shape": (1, 4, 4), "primary_kernel": 1, "primary_stride": 1}
    capsules = {"primary_types": 1, "primary_size": 2, "hidden": (3,), "hidden_size": 2}
    model = gammacaps.create(
        "small", **one_place, **capsules, class_size=2, classes=3, routing="rba", iterations=1, decoder=()
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.encoder[0].weight[0, 0, :2, :2] = 1 / 4  # the square's mean
        model.encoder[0].bias[0] = 0.01  # a gradient in the dark too
        model.primary.convolution.weight[0, 0] = 1.5
        model.routed[0].weight[0, 0] = 6 * torch.eye(2)  # one iteration couples by 1/3
        model.routed[0].bias[2, 0] = 1
    return model
