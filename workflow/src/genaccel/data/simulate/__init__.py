"""Simulated subjects: seeded warps of the MNI152 template with synthetic tumours. No one's brain."""
