"""Reading what was pickled, with words for what can go wrong."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from .failure import PermanentFailure, missing, need


def load(path: Path) -> Any:
    """The object in the file, or in one of joblib. It raises PermanentFailure. Unpickling runs code: only a model's
    container may do it."""
    try:
        if path.suffix == ".joblib":
            return need("joblib").load(path)
        with path.open("rb") as file:
            return pickle.load(file)
    except ModuleNotFoundError as e:
        raise missing(e) from e
    except PermanentFailure:
        raise
    except OSError as e:
        raise PermanentFailure(
            f"{path.name} cannot be read back: {e}. Files beside a module are not in its bundle: read them before the "
            "model is deployed and keep what they say in it, or make a folder of all and use topsail.deploy_bundle"
        ) from e
    except Exception as e:  # unpickling may raise anything
        raise PermanentFailure(
            f"{path.name} cannot be read back: {type(e).__name__}: {e}. It may have been made with other versions "
            "than those in the requirements of the bundle: pin the versions it was made with"
        ) from e
