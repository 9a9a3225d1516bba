"""Questions about single rows: samples, likelihoods, anomalies, completion."""
