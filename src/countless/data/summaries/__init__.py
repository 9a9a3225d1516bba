"""What is counted beside the model: values, pairs of values, and n-grams of text."""
