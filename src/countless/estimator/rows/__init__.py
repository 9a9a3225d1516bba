"""Operations on single rows: samples, likelihoods, anomalies, completion."""
