"""What the controller of Wukongs costs: `reconcile` one look at one of many, `fleet` many on a real control plane."""
