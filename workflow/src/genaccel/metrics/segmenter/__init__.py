"""The segmenter of mask adherence: its network and file (`network`), and the command that trains it."""
