"""An update of the model of wines, as a message of a model stream.

`python3 update.py 3 Neighbours` prints one that brings a class of wine.py as version 3 of the model.
"""

import base64
import io
import json
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent


def archive():
    """The sources of the model, as a zip archive. It has no times, so that the same sources are the same model."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name in ("wine.py", "wines.py"):
            z.writestr(zipfile.ZipInfo(name), (HERE / name).read_bytes())
    return out.getvalue()


def update(version, model):
    return {
        "uuid": f"wine-{version}-{model}",
        "model": {
            "name": "wine",
            "version": version,
            "description": f"{model} of wine.py",
            "kind": "python",
            "python": f"{sys.version_info.major}.{sys.version_info.minor}",
            "entry": f"wine:{model}",
            "archive": True,
            "data": base64.b64encode(archive()).decode(),
            "input_type": "doubles",
            "input_length": 11,
        },
    }


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 update.py VERSION Linear|Neighbours")
    print(json.dumps(update(*sys.argv[1:])))
