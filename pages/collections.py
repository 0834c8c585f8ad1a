"""The page Collections of a checkout."""

from ragfilter.served.pages.collections import draw

draw()
