"""The shape that the preset `small` had before the deep encoder: a network with one convolution before the capsules."""

CONVOLUTION = {"encoder": "convolution", "kernel": 7, "stride": 2, "primary_kernel": 5, "primary_stride": 2}
FORMER_SMALL = {**CONVOLUTION, "filters": 128, "primary_types": 12}
