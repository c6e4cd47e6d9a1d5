"""What `gammacaps data` says: which sets there are, and what is in one."""

from typing import Any

from gammacaps.data import find, load_set, names


def overview(data_dir: str | None = None) -> tuple[dict[str, Any], str]:
    """Every named set and where it would be read from, as data and as words."""
    places = {name: find(name, data_dir) for name in names()}
    lines = [
        f"  {name:<14} {place or 'not on this machine: downloaded when first used'}" for name, place in places.items()
    ]
    facts = {name: None if place is None else str(place) for name, place in places.items()}
    return facts, "\n".join(lines)


def describe(name: str, data_dir: str | None = None) -> tuple[dict[str, Any], str]:
    """Counts, sizes and balance of a set's two splits, as data and as words."""
    facts: dict[str, Any] = {"name": name, "splits": {}}
    lines = []
    for split in ("train", "test"):
        data = load_set(name, split, data_dir=data_dir)
        counts = data.labels.bincount(minlength=len(data.class_names)).tolist()
        count, channels, height, width = data.images.shape
        facts["class_names"] = list(data.class_names)
        facts["splits"][split] = {
            "images": count,
            "shape": [channels, height, width],
            "images_by_class": counts,
            "mean": round(data.images.mean().item(), 6),
            "source": str(data.source),
        }
        lines.append(f"{split}: {count:,} images of {channels}x{height}x{width} from {data.source}")
        lines += [
            f"  {label:>3} {title:<14}{n:>7,}"
            for label, (title, n) in enumerate(zip(data.class_names, counts, strict=True))
        ]
    return facts, "\n".join(lines)
