"""Stage `optimize`: how fast each variant runs, what memory and energy it takes, and how far its output is off."""
