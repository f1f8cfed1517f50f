"""Stage `data`: NIfTI files or simulated subjects in; prepared volumes and a manifest out."""
