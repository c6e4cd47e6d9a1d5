"""A note where figures are of images that a run's weights were chosen by."""

from gammacaps.data.overlap import share_test_images, without_images_of
from gammacaps.runs.train_config import TrainConfig


def chosen_by(train: TrainConfig | None, data: str) -> str:
    """A sentence where the weights were chosen by test images (`validate_on`) that these data have too; or nothing."""
    if train is None or not train.validate or train.validate_on is None:
        return ""
    if not share_test_images(data, train.validate_on):
        return ""
    those = "" if data == train.validate_on else f", some of which {data} has too"
    other = without_images_of(data, train.validate_on)
    way = "measure it on other images with --data" if other is None else f"measure it with --data {other}"
    return (
        f"The weights were chosen by test images of {train.validate_on}{those}, so that figures on {data} may promise "
        f"too much: {way}."
    )
