"""The deployers, one for each kind of model. `terms` are the keyword arguments of `Terms`, the same for all."""

from __future__ import annotations

import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import bundle as bundles
from ..bundle import Bundle, BundleError, Manifest
from ..optional import numpy
from . import requirements
from .deployment import Deployment
from .example import Example, read
from .failure import DeployFailed
from .frozen import Frozen, freeze, with_modules
from .rollout import roll_out
from .terms import Terms


def deploy_bundle(name: str, bundle: Bundle, **terms: Any) -> Deployment:
    """Deploys a bundle that was made before, with `topsail.bundle.build` or `read`."""
    return roll_out(name, bundle, Terms.of(terms))


def deploy_python_function(
    name: str,
    func: Callable[[list[Any]], Any] | str | Any,
    *,
    example: Any = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a function from a list of inputs to a list of outputs of the same length; or an object or class with such
    a `predict` method, and `setup` and the others of `topsail.serve`; or the name of one, "module:object".

    What the function uses travels with it: installed packages as requirements, other modules as their source.
    """
    said = Terms.of(terms)
    shown = read(example, input_type)
    if isinstance(func, str):
        frozen, entry = with_modules(Frozen(b""), {_importable(func)}), func
    elif callable(getattr(func, "predict", func)):
        frozen, entry = freeze(func), "function.pkl"
        frozen.sources["function.pkl"] = frozen.data
    else:
        raise DeployFailed(f"a {type(func).__name__} cannot be deployed: give a function, or an object with predict")
    if shown.input_type not in ("strings", "bytes"):
        frozen.distributions |= _numpy()
    return _deploy(name, "python", entry, frozen, shown, 0, {}, said)


def deploy_sklearn(
    name: str,
    model: Any,
    example: Any,
    *,
    method: str = "predict",
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys an estimator or pipeline of scikit-learn. `method` is predict, predict_proba or decision_function."""
    said = Terms.of(terms)
    if not callable(getattr(model, method, None)):
        raise DeployFailed(f"the model is a {type(model).__name__}, which has no {method}")
    shown = read(example, input_type)
    frozen = freeze(model)
    frozen.distributions |= {requirements.need(d, "the model") for d in ("scikit-learn", "numpy", "scipy")}
    frozen.sources["model.pkl"] = frozen.data
    options = {} if method == "predict" else {"method": method}
    return _deploy(name, "sklearn", "model.pkl", frozen, shown, shown.length, options, said)


def deploy_onnx(
    name: str,
    model_or_path: Any,
    example: Any,
    *,
    output: str | None = None,
    device: str = "cpu",
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys an ONNX model: a path, its bytes, or an object of the package onnx. `output` names one of several.
    `device` is cpu, cuda, or auto."""
    said = Terms.of(terms)
    shown = read(example, input_type, shaped=True)
    given = {"output": output, "device": device if device != "cpu" else None}
    options = {k: v for k, v in given.items() if v is not None}
    frozen = _file("model.onnx", _content(model_or_path), "onnxruntime")
    return _deploy(name, "onnx", "model.onnx", frozen, shown, shown.length, options, said)


def deploy_torch(
    name: str,
    module: Any,
    example: Any,
    *,
    device: str = "cpu",
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a module of PyTorch as TorchScript: one that is that already, else it is scripted, or traced with the
    example. It gets a tensor with a row per input. `device` is cpu, cuda, or auto."""
    said = Terms.of(terms)
    shown = read(example, input_type, shaped=True)
    options = {"device": device} if device != "cpu" else {}
    if shown.shape:
        options["shape"] = ",".join(map(str, shown.shape))
    frozen = _file("model.pt", _torchscript(module, shown), "torch")
    return _deploy(name, "torch", "model.pt", frozen, shown, shown.length, options, said)


def deploy_tensorflow(
    name: str,
    model_or_path: Any,
    example: Any,
    *,
    signature: str | None = None,
    output: str | None = None,
    device: str = "cpu",
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a model of TensorFlow: the folder of a SavedModel, a model of Keras, or a tf.Module with signatures.
    `signature` is serving_default without; `output` names one of several. `device` is cpu, cuda, or auto."""
    said = Terms.of(terms)
    shown = read(example, input_type, shaped=True)
    given = {"signature": signature, "output": output, "device": device if device != "cpu" else None}
    options = {k: v for k, v in given.items() if v is not None}
    if shown.shape:
        options["shape"] = ",".join(map(str, shown.shape))
    return _deploy(name, "tensorflow", "model", _saved_model(model_or_path), shown, shown.length, options, said)


def deploy_xgboost(
    name: str, model: Any, example: Any, *, output: str | None = None, input_type: str | None = None, **terms: Any
) -> Deployment:
    """Deploys a Booster or a model of XGBoost. `output` is value, margin, or label, which is what classifiers give
    without it."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    booster = _trees(model) if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_raw"):
        raise DeployFailed(f"the model is a {type(model).__name__}: give a Booster or a model of XGBoost")
    frozen = _file("model.ubj", bytes(booster.save_raw("ubj")), "xgboost")
    options = _outcome(model, output) | _missing(getattr(model, "missing", None))
    return _deploy(name, "xgboost", "model.ubj", frozen, shown, shown.length, options, said)


def deploy_lightgbm(
    name: str, model: Any, example: Any, *, output: str | None = None, input_type: str | None = None, **terms: Any
) -> Deployment:
    """Deploys a Booster or a model of LightGBM. `output` is value, margin, or label, which is what classifiers give
    without it."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    booster = getattr(model, "booster_", model)
    if not hasattr(booster, "model_to_string"):
        raise DeployFailed(f"the model is a {type(model).__name__}: give a Booster or a model of LightGBM")
    frozen = _file("model.txt", booster.model_to_string().encode(), "lightgbm")
    return _deploy(name, "lightgbm", "model.txt", frozen, shown, shown.length, _outcome(model, output), said)


def deploy_pmml(
    name: str,
    model_or_path: Any,
    example: Any,
    *,
    heap: str | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a PMML model: a path, or its bytes. The example is a list of the active fields' values in their order,
    or a dict by their names; then inputs are texts with such an object as JSON. `heap` is the memory of Java, like
    "1g"; 256m without. Where it runs it needs Java 17, and topsail-pmml.jar."""
    said = Terms.of(terms)
    shown = read(json.dumps(example) if isinstance(example, Mapping) else example, input_type)
    if shown.input_type == "bytes":
        raise DeployFailed("a PMML model takes numbers, or texts with a JSON object: give such an example")
    frozen = Frozen(b"", set(), {"model.pmml": _content(model_or_path)})
    return _deploy(name, "pmml", "model.pmml", frozen, shown, shown.length, {"heap": heap} if heap else {}, said)


def deploy_pyspark(
    name: str,
    model: Any,
    example: Any,
    func: Callable[[Any, Any, list[Any]], Any] | None = None,
    *,
    master: str = "local[1]",
    features: str | None = None,
    output: str | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a model of pyspark.ml or pyspark.mllib that can be saved, with a function from a session, the model and a
    list of inputs to a list of outputs of the same length. A PipelineModel needs no function: `features` is the column
    that its inputs are in, and `output` the one that is answered. `master` says with how many threads Spark runs, as
    "local[4]". Where it runs it needs Java."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    of_class = f"{type(model).__module__}.{type(model).__name__}"
    given = {"master": master if master != "local[1]" else None, "features": features, "output": output}
    if func is None and type(model).__name__ != "PipelineModel":
        raise DeployFailed(f"the model is a {of_class}: give func(spark, model, inputs), or a PipelineModel")
    if func is not None and (features or output):
        raise DeployFailed("features and output are for a PipelineModel without func: leave them out")
    frozen = Frozen(b"") if func is None else freeze(func)
    frozen.distributions |= {requirements.need("pyspark", "trying the model")} | _numpy()
    frozen.sources |= _saved_by_spark(model)
    if func is not None:
        frozen.sources["function.pkl"] = frozen.data
        given |= {"model": "model", "class": of_class}
    options = {k: v for k, v in given.items() if v is not None}
    entry, length = ("function.pkl", 0) if func else ("model", shown.length)
    return _deploy(name, "pyspark", entry, frozen, shown, length, options, said)


def deploy_r(
    name: str,
    path: str | os.PathLike[str],
    example: Any,
    *,
    seconds: float | None = None,
    input_type: str | None = None,
    **terms: Any,
) -> Deployment:
    """Deploys a file of R that defines `predict(inputs)`, or a folder with such a file model.R and what that reads, as
    `topsail_save` of containers/r/topsail.R makes it. `seconds` is how long R may take for a batch, 30 without. Where
    it runs it needs R with jsonlite and the packages that the file loads."""
    said = Terms.of(terms)
    shown = read(example, input_type)
    place = Path(path)
    entry = "model.R" if place.is_dir() else place.name
    if not entry.endswith(".R"):
        raise DeployFailed(f"{str(place)!r} is not a file .R: give one, or a folder with a model.R")
    files = _folder(place) if place.is_dir() else {entry: _content(place)}
    if entry not in files:
        raise DeployFailed(f"the folder {str(place)!r} has no model.R: make it with topsail_save in R, or name a file")
    options = {} if seconds is None else {"seconds": f"{seconds:g}"}
    return _deploy(name, "r", entry, Frozen(b"", set(), files), shown, 0, options, said)


def deploy_host(
    name: str,
    packages: Iterable[str] = (),
    *,
    memory_mb: int = 512,
    **terms: Any,
) -> Deployment:
    """Deploys a host, in whose replicas other models are held that are deployed with `hosted_by=name`: those that are
    asked, as many as there is memory for. They share its environment: `packages` are distributions, as scikit-learn,
    that they need, in the versions that are installed here."""
    said = replace(Terms.of(terms), app=False)
    bundle = _bundle("host", "", Frozen(b"", set(packages) | _numpy()), None, 0, {}, said)
    return roll_out(name, bundle, said, host={"memory_mb": memory_mb})


def _deploy(
    name: str,
    runtime: str,
    entry: str,
    frozen: Frozen,
    example: Example,
    length: int,
    options: Mapping[str, str],
    terms: Terms,
) -> Deployment:
    if _on_cuda(options):
        terms = terms.with_gpu()
    return roll_out(name, _bundle(runtime, entry, frozen, example, length, options, terms), terms)


def _on_cuda(options: Mapping[str, str]) -> bool:
    """Whether the model runs on a GPU, wherever it is deployed from."""
    return options.get("device") == "cuda"


def _bundle(
    runtime: str,
    entry: str,
    frozen: Frozen,
    example: Example | None,
    length: int,
    options: Mapping[str, str],
    terms: Terms,
) -> Bundle:
    try:
        manifest = Manifest(
            runtime,
            entry,
            "" if runtime == "pmml" else bundles.PYTHON,
            requirements.pinned(frozen.distributions, terms.requirements, _on_cuda(options)),
            example.input_type if example else "",
            length,
            example.value if example else None,
            terms.description,
            options,
        )
        return bundles.build(manifest, frozen.sources)
    except BundleError as e:
        raise DeployFailed(str(e)) from None


def _file(name: str, data: bytes, module: str) -> Frozen:
    """A model in a format of its own, which the module reads."""
    distribution = requirements.of_module(module) or requirements.need(module, "trying the model")
    return Frozen(b"", {distribution} | _numpy(), {name: data})


def _numpy() -> set[str]:
    """Inputs are arrays of numpy where that is installed, so they must be the same where the model runs."""
    return set() if numpy is None else {requirements.of_module("numpy") or "numpy"}


def _importable(func: str) -> str:
    """The module that "module:object" names."""
    module, colon, name = func.partition(":")
    try:
        if not colon or not name or not hasattr(import_module(module), name.partition(".")[0]):
            raise DeployFailed(f"{func!r} names nothing that can be imported here: write module:object")
    except ImportError as e:
        raise DeployFailed(f"{func!r} cannot be imported here: {e}") from None
    return module


def _content(model: Any) -> bytes:
    """The bytes of a model that is given as such, as a path, or as an object that can write itself."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if isinstance(model, (str, os.PathLike)):
        try:
            return Path(model).read_bytes()
        except OSError as e:
            raise DeployFailed(f"the model {os.fspath(model)!r} cannot be read: {e.strerror}") from None
    if hasattr(model, "SerializeToString"):
        data: bytes = model.SerializeToString()
        return data
    raise DeployFailed(f"the model is a {type(model).__name__}: give a path, bytes, or an object of the package onnx")


def _torchscript(module: Any, example: Example) -> bytes:
    torch = import_module("torch")
    if not isinstance(module, torch.jit.ScriptModule):
        module = _scripted(torch, module.eval(), example)
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    return buffer.getvalue()


def _scripted(torch: Any, module: Any, example: Example) -> Any:
    try:
        return torch.jit.script(module)
    except Exception as unscripted:  # much of Python is no TorchScript; then what happens with the example is recorded
        dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.float32)
        batch = torch.tensor(example.value, dtype=dtype).reshape(1, *(example.shape or (-1,)))
        try:
            return torch.jit.trace(module, batch)
        except Exception as e:
            raise DeployFailed(f"the module is no TorchScript ({unscripted}), and fails on the example: {e}") from e


def _saved_model(model: Any) -> Frozen:
    """The files of a SavedModel, below `model`."""
    frozen = _file("", b"", "tensorflow")
    with tempfile.TemporaryDirectory(prefix="topsail-") as made:
        folder = Path(model) if isinstance(model, (str, os.PathLike)) else Path(made, "model")
        if hasattr(model, "export"):
            model.export(str(folder), verbose=False)
        elif (tf := sys.modules.get("tensorflow")) and isinstance(model, tf.Module):
            tf.saved_model.save(model, str(folder))
        if not (folder / "saved_model.pb").is_file():
            raise DeployFailed(f"{model!r} is no SavedModel: give its folder, a model of Keras, or a tf.Module")
        return Frozen(b"", frozen.distributions, _folder(folder, "model/"))


def _saved_by_spark(model: Any) -> dict[str, bytes]:
    """The files of the saved model, below `model`."""
    with tempfile.TemporaryDirectory(prefix="topsail-") as made:
        folder = Path(made, "model")
        try:
            if type(model).__module__.startswith("pyspark.mllib"):
                model.save(import_module("pyspark").SparkContext.getOrCreate(), folder.as_uri())
            else:
                model.save(folder.as_uri())
        except Exception as e:  # Py4J and Java have their own
            raise DeployFailed(f"Spark cannot save the model, a {type(model).__name__}: {e}") from e
        files = _folder(folder, "model/")
    if not files:
        raise DeployFailed("Spark saved the model on another machine: load it in a session with the master local[1]")
    return files


def _folder(folder: Path, below: str = "") -> dict[str, bytes]:
    """Its files, by their names in a bundle."""
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {below + p.relative_to(folder).as_posix(): p.read_bytes() for p in found}


def _trees(model: Any) -> Any:
    """The booster with what the model itself predicts with: where training was stopped early, the trees up to the best
    one. A linear booster has none, and counts as a whole."""
    booster = model.get_booster()
    best = getattr(model, "best_iteration", None)
    return booster if best is None or model.booster == "gblinear" else booster[: best + 1]


def _missing(value: float | None) -> dict[str, str]:
    """The number that the model takes for a missing one, beside NaN."""
    return {} if value is None or math.isnan(value) else {"missing": repr(float(value))}


def _outcome(model: Any, output: str | None) -> dict[str, str]:
    """Classifiers give labels, as they do in Python; what they call them goes along."""
    classes: Iterable[Any] | None = getattr(model, "classes_", None)
    if output is None and classes is None:
        return {}
    chosen = {"output": output or "label"}
    if chosen["output"] != "label" or classes is None:
        return chosen
    return chosen | {"classes": json.dumps([c.item() if hasattr(c, "item") else c for c in classes])}
