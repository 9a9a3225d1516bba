"""Fusion of the column model's estimates with exact counts and with text models."""
