"""Are these gamma-capsules? The paper's definitions, checked capsule by capsule."""
