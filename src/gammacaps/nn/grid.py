"""How far the encoders for images of any size go down, and how wide they get on the way."""

# The image is halved until no side is longer than this, so that the number of primary capsules stays the same.
LARGEST_GRID = 8
WIDEST = 4  # channels double with each halving, up to this many times those of the first
