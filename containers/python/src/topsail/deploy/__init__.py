"""Deployers: from a model in Python to an app that answers, in one call.

    import topsail
    d = topsail.deploy_sklearn("iris", model, example=X[0])
    d.predict(X[0]).output

Each deployer packs the model into a bundle, tries the bundle on the example as a container would run it, uploads it,
registers a version and an app, and waits until a replica is ready.
"""

from .deployers import (
    deploy_bundle,
    deploy_host,
    deploy_lightgbm,
    deploy_onnx,
    deploy_pmml,
    deploy_pyspark,
    deploy_python_function,
    deploy_r,
    deploy_sklearn,
    deploy_tensorflow,
    deploy_torch,
    deploy_xgboost,
)
from .deployment import Deployment
from .failure import DeployFailed

__all__ = [
    "DeployFailed",
    "Deployment",
    "deploy_bundle",
    "deploy_host",
    "deploy_lightgbm",
    "deploy_onnx",
    "deploy_pmml",
    "deploy_pyspark",
    "deploy_python_function",
    "deploy_r",
    "deploy_sklearn",
    "deploy_tensorflow",
    "deploy_torch",
    "deploy_xgboost",
]
