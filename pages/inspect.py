"""The page Inspect of a checkout."""

from ragfilter.ui.served.pages.inspect import draw

draw()
