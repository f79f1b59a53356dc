"""Puts controllers on ports: live.py on a real cluster. components.py says what each component is and may do. Row 6."""
