"""Deployers: from a model in Python to an app that answers, in one call.

    import topsail
    d = topsail.deploy_sklearn("iris", model, example=X[0])
    d.predict(X[0]).output

Each deployer packs the model into a bundle, tries the bundle on the example as a container would run it, uploads it,
registers a version and an app, and waits until a replica is ready.
"""

from .bundles import deploy_bundle, deploy_host
from .chat import deploy_chat
from .deployment import Deployment
from .failure import DeployFailed
from .onnx import deploy_onnx
from .pipeline import deploy_pipeline
from .pmml import deploy_pmml
from .pyspark import deploy_pyspark
from .python import deploy_python_function
from .r import deploy_r
from .sklearn import deploy_sklearn
from .tensorflow import deploy_tensorflow
from .torch import deploy_torch
from .trees import deploy_lightgbm, deploy_xgboost

__all__ = [
    "DeployFailed",
    "Deployment",
    "deploy_bundle",
    "deploy_chat",
    "deploy_host",
    "deploy_lightgbm",
    "deploy_onnx",
    "deploy_pipeline",
    "deploy_pmml",
    "deploy_pyspark",
    "deploy_python_function",
    "deploy_r",
    "deploy_sklearn",
    "deploy_tensorflow",
    "deploy_torch",
    "deploy_xgboost",
]
