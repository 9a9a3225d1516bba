"""Training in several processes: each computes the gradient of its share of every batch."""
