"""Compares two runs of one model: volume by volume, as sets, and whether the one may stand for the other."""
