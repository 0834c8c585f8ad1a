"""How much a page shows at first sight: the controls, words and numbers in its window."""

from __future__ import annotations

from typing import NamedTuple, cast

from playwright.sync_api import Page

COUNT = r"""() => {
  const inWindow = (box) =>
    box.width > 1 && box.height > 1 &&
    box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  const visible = (el) =>
    el.checkVisibility({opacityProperty: true, visibilityProperty: true});
  const silent = '[data-passage], [data-live-announcer], script, style, [data-testid=stIconMaterial]';
  const roots = [document];
  const controls = [], texts = [];
  while (roots.length) {
    const root = roots.pop();
    for (const el of root.querySelectorAll('*')) if (el.shadowRoot) roots.push(el.shadowRoot);
    const reached = 'button, a[href], input, select, textarea, summary, [role=button], ' +
      '[role=tab], [role=switch], [role=slider], [role=radio], [role=checkbox], [role=listbox]';
    for (const el of root.querySelectorAll(reached)) {
      // A switch or a choice hides its own input and shows the label around it.
      const shown = el.matches('input') ? (el.closest('label') ?? el) : el;
      if (el.parentElement?.closest(reached) && !el.matches('input')) continue;
      if (visible(shown) && inWindow(shown.getBoundingClientRect()))
        controls.push((el.ariaLabel || shown.innerText || el.tagName).trim().slice(0, 40));
    }
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); ) {
      const el = node.parentElement;
      if (!node.data.trim() || !el || el.closest(silent)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      if (visible(el) && [...range.getClientRects()].some(inWindow)) texts.push(node.data);
    }
    for (const el of root.querySelectorAll('input, textarea'))
      if (el.value && !el.matches('[type=checkbox], [type=radio], [type=range]') &&
          visible(el) && inWindow(el.getBoundingClientRect())) texts.push(el.value);
  }
  const words = texts.join(' ').split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  return {controls, words};
}"""


class Budget(NamedTuple):
    controls: list[str]
    words: list[str]

    @property
    def numbers(self) -> list[str]:
        return [word for word in self.words if any(letter.isdigit() for letter in word)]


def first_window(page: Page) -> Budget:
    """What the window shows, without the titles and texts of passages, which are in elements with `data-passage`,
    and what only screen readers get."""
    counted = cast(dict[str, list[str]], page.evaluate(COUNT))
    return Budget(counted["controls"], counted["words"])
