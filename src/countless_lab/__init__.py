"""The laboratory: measures the product as its users get it. The product never imports it."""
