"""Bad pictures: the fifteen corruptions of MNIST-C (Mu and Gilmer, 2019), for grey and colour images of any size.

>>> import gammacaps
>>> from gammacaps.corruptions import corrupt, kinds
>>> images, _ = gammacaps.load_data("fashion-mini")
>>> corrupt(images[:4], "fog", seed=0).shape, len(kinds())
(torch.Size([4, 1, 28, 28]), 15)
"""

from gammacaps.corruptions.table import corrupt, kinds

__all__ = ["corrupt", "kinds"]
