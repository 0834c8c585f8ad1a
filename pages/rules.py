"""The page Rules of a checkout."""

from ragfilter.ui.served.pages.rules import draw

draw()
