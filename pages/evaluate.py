"""The page Evaluate of a checkout."""

from ragfilter.ui.served.pages.evaluate import draw

draw()
