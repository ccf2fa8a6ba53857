"""What the tests of hosts share: a host as a real process, and the sidecar's side of its connection."""

from pathlib import Path

from sidecar import Container, Peer

from topsail import bundle
from topsail.bundle import PYTHON, Manifest
from topsail.protocol import announce, load
from topsail.protocol.constants import Feature, Kind, State
from topsail.protocol.load import Load

SUM = "def predict(inputs): return [sum(map(float, x)) for x in inputs]"

# Its models wait for files that a test makes.
GATED = """
import os, time
def reach(name):
    open(os.path.join(os.environ["TEST_FOLDER"], name), "w").close()
def wait_for(name):
    until = time.monotonic() + 60
    while not os.path.exists(os.path.join(os.environ["TEST_FOLDER"], name)):
        assert time.monotonic() < until
        time.sleep(0.001)
class Model:
    def setup(self):
        reach("loading")
        wait_for("load")
    def predict(self, inputs):
        reach("running")
        wait_for("run")
        return [1.0] * len(inputs)
    def teardown(self):
        reach("closed")
"""


class Sidecar:
    """The sidecar's side of a host's connection, beyond what it has in common with others."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        peer.greet(features=Feature.HOST | Feature.STAGES)
        [self.host] = self.announced()
        assert (self.host.id, self.host.state, self.host.input_type, self.host.model) == (0, State.READY, 0, "small")

    def announced(self):
        return announce.decode(self.peer.expect(Kind.ANNOUNCE))

    def ask_for(self, folder, model="guest", version="1", kind=0, length=0, signature=""):
        asked = Load(model, version, kind, length, folder, "sha256:00", batch=b"{}", signature=signature)
        self.peer.send(Kind.LOAD, load.encode(asked))

    def answered(self):
        """What became of the version; in the same frame the host says what it takes now."""
        [entry, self.host] = self.announced()
        assert (self.host.id, self.host.state) == (0, State.READY) and self.host.memory > 1 << 20
        return entry

    def load(self, folder, **asked):
        self.ask_for(folder, **asked)
        entry = self.answered()
        assert (entry.state, entry.reason) == (State.READY, "")
        return entry

    def refused(self, folder, **asked):
        self.ask_for(folder, **asked)
        entry = self.answered()
        assert (entry.state, entry.memory) == (State.GONE, 0)
        return entry.reason

    def unload(self, id):
        self.peer.send(Kind.UNLOAD, load.encode_unload(id))
        assert self.answered().state == State.GONE

    def predict(self, entry, *values, **options):
        return self.peer.predict(*values, model=entry.id, **options)


class Host(Container):
    def __init__(self, folder: Path, *command: str, **environ: str) -> None:
        self.models = folder / "models"
        self.models.mkdir(exist_ok=True)
        given = {"TOPSAIL_MODELS_DIR": str(self.models), "TOPSAIL_MODEL": "small", "TOPSAIL_INPUT_TYPE": "any"}
        super().__init__(folder, "-m", *(command or ("topsail", "host")), **given | environ)

    def accept(self) -> Sidecar:
        return Sidecar(super().accept())

    def put(self, name, files, entry="model:predict", runtime="python", **said):
        """Unpacks a bundle, and returns its name below the folder of models."""
        content = {n: c if isinstance(c, bytes) else c.encode() for n, c in files.items()}
        python = {} if runtime in ("command", "pmml") else {"python": PYTHON}
        bundle.build(Manifest(runtime, entry, **(python | said)), content).unpack(self.models / name)
        return name
