"""What the controller of Wukongs costs."""
