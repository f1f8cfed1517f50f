"""Stage `train`: prepared volumes in; weights of the noise predictor out."""
