"""The fixture and the marker ``simulated_gpus``, as a project that tests with mirrored has them."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import mirrored as mr

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[1]
FLAGS = re.DOTALL | re.MULTILINE
# In a checkout that was installed before it had the plugin, pytest finds it here.
PLUGINS = Path(mr.__file__).parent / "_plugins"


class LoadedModules:
    """A plugin that keeps the modules that a run inside loads: pytest would forget them after it.

    Modules that were loaded before have parts of them, which would then be there twice.
    """

    def __init__(self) -> None:
        self._modules: dict[str, ModuleType] = {}

    def pytest_unconfigure(self) -> None:
        self._modules = dict(sys.modules)

    def keep(self) -> None:
        """Load the modules again, but not the tests, which have the folder of their project."""
        for name, module in self._modules.items():
            if not name.startswith(("test_", "pytest_mirrored")):
                sys.modules.setdefault(name, module)


@pytest.fixture
def loaded() -> Iterator[LoadedModules]:
    """Keep the modules when `pytester`, which comes after it, has ended."""
    modules = LoadedModules()
    yield modules
    modules.keep()


@pytest.fixture
def project(
    loaded: LoadedModules, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    """A project of somebody else's, where the plugin is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # Some take a second to load.
    if PLUGINS.exists():
        monkeypatch.setenv("PYTHONPATH", str(PLUGINS))
        pytester.syspathinsert(PLUGINS)
    pytester.makeini(
        """
        [pytest]
        addopts = -p pytest_mirrored -p no:cacheprovider --strict-markers --show-capture=no
        filterwarnings =
            error
            ignore:Module already imported so cannot be rewritten
        """
    )
    return pytester


TESTS = '''
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import mirrored as mr

kept = []
QUICK = settings(max_examples=3, database=None, deadline=None)
ANEW = settings(QUICK, suppress_health_check=[HealthCheck.function_scoped_fixture])


def count():
    return len(mr.config.list_physical_devices("GPU"))


class TestOrder:
    """Each test leaves something behind, and none sees what another one left."""

    def test_fixture(self, simulated_gpus):
        gpus = simulated_gpus(2, memory_limit=8)
        assert [gpu.name for gpu in gpus] == ["/device:GPU:0", "/device:GPU:1"]
        with pytest.raises(mr.errors.ResourceExhaustedError):
            mr.zeros((1 << 22,))
        kept.append(mr.constant(1.0))
        assert len(simulated_gpus(3)) == 3  # Devices anew, in the middle.

    def test_without(self):
        assert count() == 0
        with pytest.raises(mr.errors.DevicesResetError):
            kept[0].numpy()

    @pytest.mark.simulated_gpus(4, memory_limit=64)
    def test_marker(self, users_model):
        assert count() == users_model.distribute_strategy.num_replicas_in_sync == 4
        kept.append(users_model)

    @pytest.mark.simulated_gpus(2)
    def test_marker_leaves_the_configuration_open(self):
        gpu = mr.config.list_physical_devices("GPU")[1]
        mr.config.set_visible_devices([gpu], "GPU")
        assert len(mr.config.list_logical_devices("GPU")) == 1

    @pytest.mark.simulated_gpus(2)
    def test_marker_and_fixture(self, simulated_gpus):
        assert count() == 2
        assert len(simulated_gpus(3)) == count() == 3

    @pytest.mark.xfail(strict=True, raises=ZeroDivisionError)
    def test_that_fails(self, simulated_gpus):
        simulated_gpus(2)
        mr.distribute.experimental_set_strategy(mr.MirroredStrategy())
        with mr.distribute.get_strategy().scope():
            1 / 0

    def test_after_it(self):
        assert count() == 0
        assert not mr.distribute.has_strategy()

    @pytest.mark.parametrize(
        "number", [pytest.param(i, marks=pytest.mark.simulated_gpus(i)) for i in (1, 2)] + [0]
    )
    def test_marked_parameters(self, number):
        assert count() == number

    @pytest.mark.parametrize("number", [1, 3])
    def test_parameters(self, simulated_gpus, number):
        assert len(simulated_gpus(number)) == number

    @ANEW
    @given(number=st.integers(1, 3))
    def test_examples(self, simulated_gpus, number):
        assert len(simulated_gpus(number)) == number

    @pytest.mark.simulated_gpus(2)
    @QUICK
    @given(number=st.integers(1, 3))
    def test_examples_that_share_devices(self, number):
        assert count() == 2


@pytest.fixture
def users_model():
    with mr.MirroredStrategy().scope():
        return mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(1)])


@pytest.mark.simulated_gpus
def test_no_count():
    pass


@pytest.mark.simulated_gpus(-1)
def test_bad_count():
    pass


def test_that_leaves_a_scope_open(simulated_gpus):
    simulated_gpus(1)
    mr.device("CPU:0").__enter__()


def test_that_ends_it():
    mr.device(None).__exit__(None, None, None)
    mr.config.experimental.reset_devices()
'''


def shown_to_users() -> list[str]:
    """Return the tests that README and docs/howto/testing.md show."""
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/howto/testing.md")]
    blocks = [each for page in pages for each in re.findall(r"^```python\n(.*?)^```", page, FLAGS)]
    return [block for block in blocks if "def test_" in block]


@pytest.mark.behaviour("pytest-plugin")
def test_each_test_has_devices_of_its_own(project: pytest.Pytester, loaded: LoadedModules) -> None:
    """What cannot be done is an error of the test that asked for it, and of no other one."""
    project.makepyfile(TESTS, test_of_pages="".join(shown_to_users()))
    result = project.runpytest_inprocess("-p", "_hypothesis_pytestplugin", plugins=[loaded])
    result.assert_outcomes(passed=18, xfailed=1, errors=3)
    text = result.stdout.str()
    assert "simulated_gpus(count, memory_limit=None): missing a required argument: 'count'" in text
    assert "`count` must be a whole number, 0 or more. Received: count=-1" in text
    assert "inside a `with mr.device(...)` block" in text


@pytest.mark.behaviour("pytest-plugin")
@pytest.mark.slow
def test_nothing_is_imported_before_it_is_used(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import sys

        def test_without(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("pytest_mirrored")
            assert not {"mirrored", "numpy"} & {*sys.modules}

        def test_with(simulated_gpus):
            assert "mirrored" not in sys.modules
            assert len(simulated_gpus(2)) == 2
        """
    )
    result = project.runpytest_subprocess()
    result.assert_outcomes(passed=2)


def test_the_modules_that_a_run_inside_loaded_stay() -> None:
    """Those that others have are the ones that are imported, for tests that run after it."""
    others = [
        inner
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "mirrored"
        for inner in vars(module).values()
        if isinstance(inner, ModuleType) and inner.__name__.startswith("mirrored.")
    ]
    assert [inner for inner in others if sys.modules.get(inner.__name__) is not inner] == []
