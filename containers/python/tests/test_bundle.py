"""Bundles: the same content is the same archive, and nothing else than what a bundle may be is read."""

import hashlib
import io
import json
import random
import stat
import subprocess
import sys
import warnings
import zipfile

import pytest
from sidecar import environment

from topsail import bundle
from topsail.bundle import MANIFEST, PYTHON, BundleError, Manifest
from topsail.container.signature import Signature, Tensor

FILES = {"function.pkl": b"\x80\x05N.", "helpers/__init__.py": b"", "helpers/sums.py": b"x = 1\n" * 1000}
MANY = Manifest(
    "sklearn",
    "function.pkl",
    "3.11",
    ("scikit-learn==1.5.2", "numpy>=1.26,<3"),
    "doubles",
    4,
    [1.0, 2.0, 3.5, 4.0],
    "Which iris, ü",
    {"method": "predict"},
)


def archive(members, change=None) -> bytes:
    """An archive with whatever is wanted in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that come twice are meant
        for name, data in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if change:
                change(info)
            file.writestr(info, data)
    return buffer.getvalue()


def manifest(content=FILES, **members) -> bytes:
    listed = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in content.items()}
    said = {"format": 1, "runtime": "python", "entry": "function.pkl", "python": PYTHON, "files": listed}
    return json.dumps(said | members).encode()


def test_what_was_built_is_read():
    built = bundle.build(MANY, FILES)
    read = bundle.read(built.data)
    assert (read.manifest, read.files, read.digest) == (MANY, FILES, built.digest)
    assert built.digest == "sha256:" + hashlib.sha256(built.data).hexdigest()


NAMED = Signature((Tensor("x", "float32", (-1, 2)), Tensor("text", "string")), (Tensor("y", "json"),))


def test_a_signature():
    """With inputs the input type is tensors, also where that is left out."""
    built = bundle.build(Manifest("python", "function.pkl", PYTHON, signature=NAMED, example={"x": []}), FILES)
    assert bundle.read(built.data).manifest == built.manifest
    assert (built.manifest.signature, built.manifest.input_type) == (NAMED, "tensors")
    assert built.manifest.members()["signature"] == {
        "inputs": [{"name": "x", "type": "float32", "shape": [-1, 2]}, {"name": "text", "type": "string"}],
        "outputs": [{"name": "y", "type": "json"}],
    }
    outputs = Signature((), NAMED.outputs)
    assert Manifest("python", "function.pkl", PYTHON, input_type="doubles", signature=outputs).input_type == "doubles"


def test_the_archive_is_as_it_is_written_down():
    with zipfile.ZipFile(io.BytesIO(bundle.build(MANY, FILES).data)) as file:
        infos = file.infolist()
        said = json.loads(file.read(MANIFEST))
    assert [i.filename for i in infos] == sorted([*FILES, MANIFEST])
    assert {i.date_time for i in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {i.external_attr >> 16 for i in infos} == {stat.S_IFREG | 0o644}
    assert {i.compress_type for i in infos} == {zipfile.ZIP_DEFLATED}
    assert said.pop("files").keys() == FILES.keys()
    assert said == {
        "format": 1,
        "runtime": "sklearn",
        "entry": "function.pkl",
        "python": "3.11",
        "requirements": ["scikit-learn==1.5.2", "numpy>=1.26,<3"],
        "input_type": "doubles",
        "input_length": 4,
        "example": [1.0, 2.0, 3.5, 4.0],
        "description": "Which iris, ü",
        "options": {"method": "predict"},
    }


def test_what_is_not_said_is_left_out():
    said = json.loads(
        zipfile.ZipFile(io.BytesIO(bundle.build(Manifest("r", "m.R", PYTHON), {"m.R": b""}).data)).read(MANIFEST)
    )
    assert said.keys() == {"format", "runtime", "entry", "python", "files"}


def test_the_same_content_has_the_same_digest_in_another_process():
    """Whatever the order of the files, the time, and the seed of hashes."""
    text = f"from topsail.bundle import *\nprint(build({MANY!r}, dict(reversed({FILES!r}.items()))).digest)"
    run = subprocess.run([sys.executable, "-c", text], env=environment(), capture_output=True, check=True, timeout=30)
    assert run.stdout.decode().strip() == bundle.build(MANY, FILES).digest


def test_unpacking(tmp_path):
    built = bundle.build(MANY, FILES)
    built.unpack(tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == FILES
    assert bundle.read_manifest((tmp_path / MANIFEST).read_bytes())[0] == MANY


@pytest.mark.parametrize(
    "good",
    [
        "numpy",
        "scikit-learn==1.5.2",
        "a.b_c[x,y]>=1,<2",
        "torch ~= 2.1",
        "x==1.0+cpu",
        "x==2.*",
        "x>1; python_version < '3'",
    ],
)
def test_requirements(good):
    assert Manifest("python", "a:b", PYTHON, requirements=(good,)).requirements == (good,)


BAD_REQUIREMENTS = [
    "",
    "-r other.txt",
    "--index-url=http://models.example",
    "numpy --no-deps",
    "https://models.example/x.whl",
    "x @ https://models.example/x.whl",
    "git+https://models.example/x",
    "./local",
    "/local",
    "../x",
    "a\n-r b",
    "x; python_version<'3' --pre",
    "x; -r other.txt",
    "x==1 -e .",
    "x==",
    "$HOME",
    "x" * 257,
]


@pytest.mark.parametrize("bad", BAD_REQUIREMENTS)
def test_requirements_that_could_bring_in_anything(bad):
    with pytest.raises(BundleError, match="is no requirement that a bundle may have: write a name with versions"):
        Manifest("python", "a:b", PYTHON, requirements=(bad,))
    with pytest.raises(BundleError):
        bundle.read(archive([(MANIFEST, manifest(requirements=[bad])), *FILES.items()]))


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "C:x", "a\\b", "a\nb", "a\x00b", MANIFEST, "ü" * 200],
)
def test_names_that_lead_elsewhere(name):
    with pytest.raises(BundleError, match="cannot name a file of a bundle"):
        bundle.build(Manifest("python", "a:b", PYTHON), {name: b""})
    with pytest.raises(BundleError):
        bundle.read(archive([(MANIFEST, manifest({name: b""}, entry="a:b")), (name, b"")]))


def members(**said):
    return [(MANIFEST, manifest(**said)), *FILES.items()]


def with_inputs(*inputs, **said):
    return archive(members(signature={"inputs": list(inputs)}, **said))


X = {"name": "x", "type": "float32"}


def as_link(info):
    if info.filename != MANIFEST:
        info.external_attr = (stat.S_IFLNK | 0o777) << 16


BROKEN = {
    "no zip": (b"PK", "no zip archive that can be read"),
    "empty": (archive([]), "there is no manifest.json"),
    "no manifest": (archive(FILES.items()), "there is no manifest.json"),
    "no JSON": (archive([(MANIFEST, b"{")]), "manifest.json is not JSON"),
    "deep JSON": (archive([(MANIFEST, b"[" * 100_000)]), "manifest.json is not JSON"),
    "a list": (archive([(MANIFEST, b"[]")]), "is not valid JSON object"),
    "another format": (archive(members(format=2)), "has format 2, and this version of topsail reads 1"),
    "no files": (archive(members(files=[])), "lists no files"),
    "no checksum": (archive(members(files={"x": {"size": 1}})), "no checksum and size of 'x'"),
    "unknown runtime": (archive(members(runtime="cobol")), "the runtime 'cobol' is unknown: use python, sklearn"),
    "no runtime": (archive(members(runtime=None)), "the manifest makes no sense"),
    "odd python": (archive(members(python="3")), "write one like 3.11"),
    "odd input type": (archive(members(input_type="words")), "input type 'words' is unknown"),
    "negative length": (archive(members(input_length=-1)), "is negative"),
    "true length": (archive(members(input_length=True)), "input_length is a bool"),
    "no signature": (archive(members(signature=[])), "signature is a list"),
    "unnamed": (with_inputs({"type": "bool"}), "a tensor has no 'name'"),
    "empty name": (with_inputs({"name": "", "type": "bool"}), "a name has 1 to 255 bytes and no control characters"),
    "long name": (with_inputs({"name": "é" * 128, "type": "bool"}), "a name has 1 to 255 bytes"),
    "odd element": (with_inputs({"name": "x", "type": "float8"}), "element type 'float8' is unknown"),
    "odd shape": (with_inputs(X | {"shape": [1.5]}), "must have a name, a type and a shape"),
    "negative": (with_inputs(X | {"shape": [-2]}), "a dimension is -1, for any length, or 0 and above"),
    "wide": (with_inputs(X | {"shape": [1 << 31]}), "a dimension is -1, for any length, or 0 and above"),
    "deep shape": (with_inputs(X | {"shape": [1] * 9}), "the shape has more than 8 dimensions"),
    "JSON of a shape": (with_inputs({"name": "x", "type": "json", "shape": [1]}), "json has no shape"),
    "twice the name": (with_inputs(X, X), "has inputs of the same name: x, x"),
    "many tensors": (with_inputs(*[X | {"name": f"x{i}"} for i in range(65)]), "has more than 64 inputs"),
    "named vectors": (with_inputs(X, input_type="doubles"), "the input type is 'doubles': with a signature"),
    "named length": (with_inputs(X, input_length=3), "an input length is for vectors"),
    "unnamed tensors": (archive(members(input_type="tensors")), "without one it cannot be 'tensors'"),
    "odd requirements": (archive(members(requirements="numpy")), "requirements is a str"),
    "odd option": (archive(members(options={"a": 1})), "1 is no text"),
    "no python": (archive(members(python="")), "needs an entry, and the python that runs it, like 3."),
    "no entry at all": (archive(members(entry="")), "needs an entry"),
    "more than a command": (archive(members(runtime="command", command=["a"])), "has its command alone"),
    "no command": (archive(members(runtime="command")), "a command belongs to the runtime 'command'"),
    "a command": (archive(members(command=["rm"])), "a command belongs to the runtime 'command'"),
    "host with an entry": (archive(members(runtime="host")), "it takes no entry, input_type or options"),
    "host without python": (archive(members(runtime="host", python="", entry="", input_type="")), "needs the python"),
    "pmml with python": (archive(members(runtime="pmml")), "takes no python and no requirements"),
    "pmml without a file": (archive(members(runtime="pmml", python="", entry="a:b")), "needs the model's file"),
    "pmml with odd memory": (
        archive(members(runtime="pmml", python="", options={"heap": "1g -agentlib:x"})),
        "is no amount of memory",
    ),
    "unlisted": (archive([*members(), ("more", b"")]), "'more' is not listed in manifest.json"),
    "missing": (archive(members()[:-1]), "is missing, and listed in manifest.json"),
    "changed": (archive([*members()[:-1], ("helpers/sums.py", b"x = 2\n" * 1000)]), "was changed or damaged"),
    "shorter": (archive([*members()[:-1], ("helpers/sums.py", b"x")]), "was changed or damaged"),
    "a bomb": (archive([*members()[:-1], ("helpers/sums.py", bytes(10 << 20))]), "is larger than 6000 bytes"),
    "a big manifest": (archive([(MANIFEST, b" " * (2 << 20))]), "is larger than 1048576 bytes"),
    "a link": (archive(members(), as_link), "is no plain file"),
    "twice": (archive([*members(), ("function.pkl", b"")]), "twice"),
    "no entry": (archive(members(entry="other.pkl")), "the entry 'other.pkl' is none of the bundle's files"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_archives_that_are_no_bundles(case):
    data, says = BROKEN[case]
    with pytest.raises(BundleError) as e:
        bundle.read(data)
    assert says in str(e.value)


def test_broken_archives_raise_nothing_else():
    """Bytes of a bundle are turned, cut, and doubled, again and again."""
    good, chance = bundle.build(MANY, FILES).data, random.Random(7)
    broken = 0
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            turn = chance.choice(["bit", "byte", "cut", "double"])
            if turn == "bit":
                data[at] ^= 1 << chance.randrange(8)
            elif turn == "byte":
                data[at] = chance.choice([0, 1, 0x7F, 0xFF])
            elif turn == "cut":
                del data[at : at + chance.randint(1, 30)]
            else:
                data[at:at] = data[at : at + chance.randint(1, 30)]
        try:
            read = bundle.read(bytes(data))
            assert read.files == FILES  # what was turned is of no consequence, as a time
        except BundleError:
            broken += 1
    assert broken > 2000


def test_an_example_that_is_no_json():
    with pytest.raises(BundleError, match="cannot be written as JSON"):
        bundle.build(Manifest("python", "a:b", PYTHON, example=[float("nan")]), {})
