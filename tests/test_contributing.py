"""The examples of CONTRIBUTING, added as it says, change few files and pass the tests it names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from case_table import cases

from tests.support import guide_examples

# The rows and files of the examples, and what looks at all rows or names.
_RUN = "Scale Quartic SignedMomentum Bounded StopAtLoss Exp2 hard_values table_has public_functions"
_RUN += (
    " the_table a_table every_public every_metric keras_has every_op_function mapped ChainAllReduce"
)
_RUN += " test_methods test_results test_every_expression test_arguments every_module"
_RUN += " powers_of_two scale quartic bounded signed_momentum pairwise chain data.dataset"
_RUN += " stop_at_loss numpy.elementwise"
_SCREEN = 50  # Lines.


@cases("kind", guide_examples.LIMITS)
def test_a_recipe_fits_on_a_screen_and_names_what_changes(kind: str) -> None:
    recipe = guide_examples.sections()[kind]
    assert len(recipe.splitlines()) <= _SCREEN
    files = guide_examples.files_of(kind)
    assert len(files) <= guide_examples.LIMITS[kind]
    folder = guide_examples.folder_of(kind)
    named = {path for path in files if path.removeprefix("mirrored/") in recipe}
    assert {path for path in files - named if not path.startswith(folder)} == set()


def test_every_recipe_is_tried() -> None:
    assert guide_examples.sections().keys() == guide_examples.LIMITS.keys()


@pytest.mark.slow  # It runs tests of a copy of the repository.
def test_the_guides_examples_pass_the_tests_that_it_names(tmp_path: Path) -> None:
    guide_examples.copy_to(tmp_path)
    guide_examples.add(tmp_path)
    expected = set().union(*map(guide_examples.files_of, guide_examples.LIMITS))
    changed = guide_examples.changed(tmp_path)
    assert {path for path in changed if not path.endswith(".pyi")} == expected
    asked = ["-q", "-p", "no:cacheprovider", "--assert=plain", "-k", _RUN.replace(" ", " or ")]
    commands = [[sys.executable, "-m", "pytest", *asked, *guide_examples.tests_named()]]
    imports = Path(sys.executable).with_name("lint-imports")  # Of the extra `dev`.
    commands += [[str(imports)]] if imports.exists() else []
    for command in commands:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr
