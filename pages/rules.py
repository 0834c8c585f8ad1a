"""The page Rules of a checkout."""

from ragfilter.served.pages.rules import draw

draw()
