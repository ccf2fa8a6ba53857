"""Deploys a model of scikit-learn at the Topsail that the environment names. With the argument manifest it says only what
its bundle requires."""

import json
import sys
import time

import topsail
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from topsail.deploy import packing

flowers, kinds = load_iris(return_X_y=True)
model = LogisticRegression(max_iter=1000).fit(flowers, kinds)

if "manifest" in sys.argv:
    packing.roll_out = lambda name, bundle, *_: bundle.manifest
    manifest = topsail.deploy_sklearn("iris", model, example=flowers[0])
    print(json.dumps({"python": manifest.python, "requirements": manifest.requirements}))
    sys.exit()

began = time.monotonic()
iris = topsail.deploy_sklearn("iris", model, example=flowers[0], slo=2, progress=False)
print(f"{time.monotonic() - began:.1f} s")
for flower, kind in zip(flowers[::10], model.predict(flowers[::10]), strict=True):
    answer = iris.predict(flower)
    assert answer.output == kind and not answer.default, (answer, kind)

likely = topsail.deploy_sklearn("iris-likely", model, example=flowers[0], method="predict_proba", slo=2, progress=False)
got, want = likely.predict(flowers[0]).output, model.predict_proba(flowers[:1])[0]
assert all(abs(a - b) < 1e-9 for a, b in zip(got, want, strict=True)), (got, want)
