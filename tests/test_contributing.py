"""The examples of CONTRIBUTING, added as it says, pass the tests that it names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import guide_examples

# The rows of the examples, and what looks at all rows or names.
_RUN = "Scale Quartic SignedMomentum Bounded StopAtLoss Cbrt cbrt hard_values"
_RUN += " the_table a_table table_has public_functions every_public every_metric keras_has"
_RUN += " every_op_function pairwise"


@pytest.mark.slow  # It runs tests of a copy of the repository.
def test_the_guides_examples_pass_the_tests_that_it_names(tmp_path: Path) -> None:
    tests, unnamed = guide_examples.added_to_copy(tmp_path)
    assert unnamed == {kind: set() for kind in guide_examples.ADDED}
    assert {"tests/layers/test_package.py", "tests/test_public_api.py"} <= set(tests)
    asked = ["-q", "-p", "no:cacheprovider", "-k", _RUN.replace(" ", " or ")]
    commands = [[sys.executable, "-m", "pytest", *asked, *tests]]
    imports = Path(sys.executable).with_name("lint-imports")  # Of the extra `dev`.
    commands += [[str(imports)]] if imports.exists() else []
    for command in commands:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr
