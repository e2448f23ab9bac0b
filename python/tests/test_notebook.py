"""The example notebook runs, and shows what it should."""

import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).parents[1] / "examples" / "eight_schools.ipynb"


def test_the_example_runs() -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    shown = "\n".join(str(dict(output.get("data", {}))) + output.get("text", "") for output in outputs)
    assert "theta[8]" in shown and "<table" in shown and "(64, 200, 8)" in shown
    # The longest sequence below 100,001 begins at 77,031 and takes 350 steps.
    assert "(77031, 350)" in shown
    assert not [output for output in outputs if output.output_type == "error"]
