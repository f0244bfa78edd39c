import pytest

from musepi_tui.tools.notebook import notebook_text


def test_cells_come_with_their_kind_and_number():
    data = b'{"cells":[{"cell_type":"markdown","source":"# T"},{"cell_type":"code","source":["a\\n","b"]},3]}'
    assert (
        notebook_text(data)
        == "# %% [markdown] cell 1\n# T\n\n# %% [code] cell 2\na\nb\n\n# %% [unknown] cell 3\n\n"
    )


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"cells": 1}', b"[" * 5000], ids=str)
def test_other_content_is_no_notebook(data):
    assert notebook_text(data) is None
