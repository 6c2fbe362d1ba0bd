# SPDX-License-Identifier: MIT
"""pyplot for the cells of a test that is marked `sampled`."""
import pytest

from world import WHOLE

# In the place of matplotlib, which takes a second of a processor to load. The
# suites session and json draw with matplotlib itself.
STAND_IN = r"""
def stand_in():
    import sys, types
    plt, figures = types.ModuleType("matplotlib.pyplot"), {}
    class Figure:
        def savefig(self, to, format):
            to.write(b"\x89PNG\r\n\x1a\n")
    def figure(number=None):
        number = number or len(figures) + 1
        return figures.setdefault(number, Figure())
    plt.figure, plt.close = figure, figures.pop
    plt.get_fignums = lambda: sorted(figures)
    plt.plot = lambda data: figures or figure()
    sys.modules["matplotlib.pyplot"] = plt
    return plt
plt = stand_in()
"""


def pyplot(cb):
    """The first lines of a cell: `plt` is matplotlib's, or a stand-in."""
    if not WHOLE:
        return STAND_IN
    needs(cb, "matplotlib")
    return "import matplotlib.pyplot as plt\n"


def needs(cb, module):
    code = f"import importlib.util as u; exit(not u.find_spec('{module}'))"
    if cb.run("-c", code).code:
        pytest.skip(module + " is not installed")
