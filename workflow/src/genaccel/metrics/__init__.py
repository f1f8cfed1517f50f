"""Stage `metrics`: synthetic and real volumes in; scores out."""
