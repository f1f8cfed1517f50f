"""Where jobs run: turns what rules need into what one cluster calls it, as the site file says."""
