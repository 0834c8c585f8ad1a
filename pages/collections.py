"""The page Collections of a checkout."""

from ragfilter.ui.served.pages.collections import draw

draw()
