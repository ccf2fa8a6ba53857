"""Models of a host find their own modules and files, and leave nothing behind."""

from hosting import SUM


def test_each_finds_its_own_modules(host):
    """Of the same names, packages and packages without a file as well, and one that was read by another path."""
    model = """
import helpers, kit.part, bare.thing
class Model:
    def predict(self, inputs):
        return [f"{helpers.NAME} {kit.part.NAME} {bare.thing.NAME}"] * len(inputs)
"""
    for n in ("one", "two"):
        text = f"NAME = {n!r}"
        files = {"model.py": model, "helpers.py": text, "bare/thing.py": text}
        files |= {"kit/__init__.py": "", "kit/part.py": text}
        host.put(n, files, entry="model:Model", input_type="doubles")
    sidecar = host.accept()
    one, two = sidecar.load("one"), sidecar.load("two", version="2")
    assert sidecar.predict(one, [0]) + sidecar.predict(two, [0]) == ["one one one", "two two two"]
    sidecar.unload(one.id)
    assert sidecar.predict(two, [0]) == ["two two two"]


def test_nothing_is_left_behind(host):
    look = (
        "import os, sys\ndef predict(inputs): return [repr((os.getcwd(), sys.path, list(sys.modules)))] * len(inputs)"
    )
    host.put("look", {"look.py": look}, entry="look:predict")
    host.put("a", {"model.py": "import sys\nsys.path.append('more')\nimport extra\n" + SUM, "more/extra.py": ""})
    host.put("b", {"model.py": "import extra\n" + SUM})
    sidecar = host.accept()
    looks = sidecar.load("look")
    before = sidecar.predict(looks, [0])
    a = sidecar.load("a", version="a")
    assert sidecar.predict(a, [1, 2]) == [3.0]
    assert "needs the module 'extra'" in sidecar.refused("b", version="b")
    assert sidecar.predict(looks, [0]) == before


def test_modules_of_the_same_names_as_others(host):
    """A bundle with a pickle.py of its own gets Python's, as it would alone; one with a module that so far only another
    bundle has imported gets its own, and the other keeps what it has."""
    mine = "def predict(inputs): return [colorsys.MINE] * len(inputs)"
    host.put("a", {"model.py": "import colorsys\ncolorsys.MINE = 'a'\n" + mine})
    host.put("b", {"model.py": "import colorsys\n" + mine, "colorsys.py": "MINE = 'b'"})
    host.put("c", {"model.py": "import pickle\n" + SUM, "pickle.py": "1/0"})
    sidecar = host.accept()
    a, b, c = (sidecar.load(n, version=n) for n in "abc")
    assert sidecar.predict(a, [0]) + sidecar.predict(b, [0]) + sidecar.predict(c, [0]) == ["a", "b", 0.0]
    host.put("d", {"model.py": "import colorsys\n" + mine})
    assert sidecar.predict(sidecar.load("d"), [0]) == ["a"]


def test_data_may_be_called_like_modules(host):
    """Which are not imported once more for it."""
    host.put("a", {"model.py": "import colorsys\ncolorsys.MINE = 'a'\n" + SUM})
    model = "import colorsys\ndef predict(inputs): return [colorsys.MINE] * len(inputs)"
    host.put("b", {"model.py": model, "colorsys.bin": "", "colorsys/data": ""})
    sidecar = host.accept()
    sidecar.load("a")
    assert sidecar.predict(sidecar.load("b", version="b"), [0]) == ["a"]


def test_a_module_that_is_imported_only_when_asked_is_too_late(host):
    """The example is tried as queries will be, so that it shows before the first of them."""
    text = "def predict(inputs):\n    import late\n    return [late.X] * len(inputs)"
    host.put("late", {"model.py": text, "late.py": "X = 1.0"}, input_type="doubles", example=[1.0])
    reason = host.accept().refused("late")
    assert reason == "warm-up failed for example 0 of 1: ModuleNotFoundError: No module named 'late'"


def test_files_are_found_by_relative_names_while_a_model_loads(host):
    text = """
class Model:
    def setup(self):
        with open("offset") as file:
            self.offset = float(file.read())
    def predict(self, inputs): return [self.offset] * len(inputs)
"""
    for n in ("1.5", "2.5"):
        host.put(n, {"model.py": text, "offset": n}, entry="model:Model")
    sidecar = host.accept()
    entries = [sidecar.load(n, version=n) for n in ("1.5", "2.5")]
    assert [sidecar.predict(e, [0]) for e in entries] == [[1.5], [2.5]]
