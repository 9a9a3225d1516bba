"""The estimator, which joins all packages: fit, load, estimate, calibrate, explain, evaluate, diagnose."""
