"""The page Compare of a checkout."""

from ragfilter.ui.served.pages.compare import draw

draw()
