"""One file a family: each turns an outcome and a prediction into a few numbers."""
