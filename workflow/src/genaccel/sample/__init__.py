"""Stage `sample`: weights and masks in; synthetic volumes on the grids of the masks out."""
