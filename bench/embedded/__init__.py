"""What the embedded cluster costs: rollouts, churn, memory, and where the time goes. `compare.main` prints it."""
