"""The page Inspect of a checkout."""

from ragfilter.served.pages.inspect import draw

draw()
