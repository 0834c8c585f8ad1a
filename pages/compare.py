"""The page Compare of a checkout."""

from ragfilter.served.pages.compare import draw

draw()
