"""The page Evaluate of a checkout."""

from ragfilter.served.pages.evaluate import draw

draw()
