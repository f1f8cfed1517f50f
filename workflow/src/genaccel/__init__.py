"""genaccel: which settings make a generative model fast on which accelerator, and what they cost in quality."""
