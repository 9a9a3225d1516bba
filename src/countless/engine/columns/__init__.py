"""Inference with the model of the columns: its runtime, the particle walk, and exact enumeration."""
