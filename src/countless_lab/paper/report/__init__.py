"""One page of all exhibits: the paper's figures beside ours, and whether each finding holds."""
