"""Which ideas make better models in equal time: short runs of each, on one or several tables."""
