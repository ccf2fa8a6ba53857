"""Pickles that are the same in every process."""

import pickle
import subprocess
import sys

import pytest
from sidecar import PATIENCE, environment

from topsail.deploy.lasting import lasting

WORDS = [f"w{i}" for i in range(2500)]
CONTENT = [
    {"b", "a"},
    frozenset({"a", "c"}),
    {7, "a", (1, 2), None, True, 3.5, b"x", frozenset({"p", "q", ("r", 1)})},
    set(WORDS),  # which is added to in several batches
    {"words": set(WORDS[:1500]), "w7": WORDS},
    set(),
    frozenset(),
    {"x"},
    ("a", "w7", {"_stop_words_id": {"z", "y"}}),
]


def test_the_same_is_read_back():
    for thing in (*CONTENT, CONTENT):
        assert pickle.loads(lasting(pickle.dumps(thing, 5))) == thing


def test_what_is_one_object_stays_one():
    shared = {"b", "a"}
    first, second, words = pickle.loads(lasting(pickle.dumps([shared, shared, ["a", "b"]], 5)))
    assert first is second and first == set(words)


@pytest.mark.parametrize("protocol", range(5))
def test_other_protocols_are_read_back(protocol):
    assert pickle.loads(lasting(pickle.dumps(CONTENT, protocol))) == CONTENT


def in_other_processes(tmp_path, script):
    """What a script prints where texts hash to other values, below another folder."""
    said = set()
    for seed in "123":
        folder = tmp_path / seed
        folder.mkdir()
        (folder / "train.py").write_text(script)
        env = environment() | {"PYTHONHASHSEED": seed}
        run = subprocess.run(
            [sys.executable, str(folder / "train.py")], env=env, capture_output=True, timeout=PATIENCE, check=True
        )
        said.add(run.stdout)
    return said


def test_sets_do_not_depend_on_the_process(tmp_path):
    script = """
import hashlib, pickle
from topsail.deploy.lasting import lasting
W = [f"w{i}" for i in range(2500)]
content = [set(W), frozenset(W[:9]), {"a": {"x", "y", frozenset({"p", "q"}), ("r", "s")}}, W]
print(hashlib.sha256(lasting(pickle.dumps(content, 5))).hexdigest())
"""
    assert len(in_other_processes(tmp_path, script)) == 1


def test_a_script_makes_the_same_wherever_it_is(tmp_path):
    script = """
import hashlib
from topsail.deploy.frozen import freeze
WORDS = {"the", "a", "of"}
class Model:
    stop = {"x", "y", "z"}
    def predict(self, inputs):
        return [x in {"one", "two"} or x in WORDS or __file__ for x in inputs]
print(hashlib.sha256(freeze(Model()).data).hexdigest())
"""
    assert len(in_other_processes(tmp_path, script)) == 1


def test_a_vectorizer_makes_the_same_each_time(tmp_path):
    pytest.importorskip("sklearn")
    script = """
import hashlib
from sklearn.feature_extraction.text import TfidfVectorizer
from topsail.deploy.frozen import freeze
fitted = TfidfVectorizer(stop_words=["the", "a"]).fit(["the cat", "a dog"])
print(hashlib.sha256(freeze(fitted).data).hexdigest())
"""
    assert len(in_other_processes(tmp_path, script)) == 1


def test_file_names_keep_their_last_part():
    files = ["/tmp/ipykernel_7/1234.py", "<ipython-input-3-ab>"]
    data = lasting(pickle.dumps({"f": files[0], "g": files[1]}, 5), (), files)
    assert pickle.loads(data) == {"f": "1234.py", "g": "<ipython-input-ab>"}
