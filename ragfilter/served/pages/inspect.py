"""Inspect: one question seen through, from the store to the answer."""

from __future__ import annotations

from ragfilter.ui.kit import empty, help, problems, question_box, sidebar, view_as, workflow
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state, visit


def draw() -> None:
    frame.dress()
    here = visit.begin()
    # Not ended by st.stop(): Streamlit would then keep the state of the controls that were not
    # drawn, and the browser, which has forgotten them, would report its defaults as the reader's
    # choices.
    if state.session().present:
        from ragfilter.ui.present import page as present

        present.draw(here)
    else:
        place = workflow.reserve()
        view_as.draw_chip()
        sidebar.choose(here, reset=False)
        problems.notices(state.notices())
        question_box.draw(here)
        view, error = visit.view(here)
        if view is not None:
            # Loaded with the first result.
            from ragfilter.ui.inspect import page

            places = page.begin(view)
        # After the curve, which Enter and a slider are watched by.
        link.show_address()
        sidebar.draw(here, view)
        workflow.draw(here, place, "inspect")
        if view is not None:
            help.draw_tour(view)
            page.finish(view, places)
        else:
            html.heading("Inspect", level=1)
            sidebar.draw_reset("Reset")
            empty.draw(here, error)
            help.draw(here.resources)


if __name__ == "__main__":
    draw()
