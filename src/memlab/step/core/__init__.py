"""The simulator itself: a graph without values, its backward pass, storages and their log."""
