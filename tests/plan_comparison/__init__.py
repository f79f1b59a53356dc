"""Plans of random changes beside what a real control plane does with them."""
