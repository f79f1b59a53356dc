"""The component policy: whether a PlacementPolicy is understood, on its status."""
