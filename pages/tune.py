"""The page Tune of a checkout."""

from ragfilter.served.pages.tune import draw

draw()
