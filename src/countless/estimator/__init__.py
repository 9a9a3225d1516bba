"""The hall, where the rooms meet: fit, load, estimate, calibrate, explain, evaluate, diagnose."""
