"""The page Tune of a checkout."""

from ragfilter.ui.served.pages.tune import draw

draw()
