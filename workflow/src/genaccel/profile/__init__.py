"""Stage `profile`: where the time of a step goes, by kernel, and what limits each kernel. Never a timed run."""
