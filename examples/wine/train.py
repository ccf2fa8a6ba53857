"""Trains models of wines, by TensorFlow and by scikit-learn, writes what a model stream takes, and predicts by the framework itself."""

import base64
import io
import os
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable
from xml.etree import ElementTree as xml

import numpy as np
from wines import COLUMNS


@dataclass
class Trained:
    predict: Callable[[np.ndarray], np.ndarray]  # by the framework itself
    members: dict[str, Any]  # of an update: what the model is
    data: bytes  # the model

    def error(self, measured, quality):
        """How far it is off, in the mean."""
        return float(np.abs(self.predict(measured) - quality).mean())

    def update(self, model, version):
        """The model as a message."""
        return {
            "uuid": f"{model}-{version}",
            "model": {
                "name": model,
                "version": str(version),
                "apps": [model],
                "input_type": "doubles",
                "input_length": len(COLUMNS),
                "data": base64.b64encode(self.data).decode(),
                **self.members,
            },
        }


def tensorflow(measured, quality):
    """A small net, as the archive of a SavedModel."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # errors
    import tensorflow as tf

    tf.keras.utils.set_random_seed(1)
    scale = tf.keras.layers.Normalization()
    scale.adapt(measured)
    net = tf.keras.Sequential(
        [tf.keras.Input((len(COLUMNS),)), scale, tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(1), tf.keras.layers.Reshape(())]
    )
    net.compile(tf.keras.optimizers.Adam(0.01), "mse")
    net.fit(measured, quality, epochs=40, verbose=0)
    members = {
        "kind": "tensorflow",
        "archive": True,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "requirements": [f"tensorflow-cpu=={tf.__version__}"],
    }
    return Trained(lambda rows: net(rows.astype("float32")).numpy(), members, saved(net))


def saved(net):
    """A SavedModel as a zip archive."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        net.export(folder, verbose=False)
        for file in sorted(Path(folder).rglob("*")):
            archive.write(file, file.relative_to(folder))
    return out.getvalue()


def pmml(measured, quality):
    """A decision tree of scikit-learn, as PMML."""
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(min_samples_leaf=10, random_state=1).fit(measured, quality)
    return Trained(tree.predict, {"kind": "pmml"}, document(tree.tree_))


def document(tree):
    names = [name.replace(" ", "_") for name in COLUMNS]
    root = xml.Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
    xml.SubElement(root, "Header", description="The quality of a wine.")
    dictionary = xml.SubElement(root, "DataDictionary")
    model = xml.SubElement(root, "TreeModel", functionName="regression", splitCharacteristic="binarySplit")
    schema = xml.SubElement(model, "MiningSchema")
    for name in [*names, "quality"]:
        xml.SubElement(dictionary, "DataField", name=name, optype="continuous", dataType="double")
        xml.SubElement(schema, "MiningField", name=name, usageType="target" if name == "quality" else "active")

    def node(parent, i, predicate):
        at = xml.SubElement(parent, "Node", score=repr(float(tree.value[i][0][0])))
        at.append(predicate)
        if tree.children_left[i] >= 0:
            split = {"field": names[tree.feature[i]], "value": repr(float(tree.threshold[i]))}
            node(at, tree.children_left[i], xml.Element("SimplePredicate", operator="lessOrEqual", **split))
            node(at, tree.children_right[i], xml.Element("SimplePredicate", operator="greaterThan", **split))

    node(model, 0, xml.Element("True"))
    return xml.tostring(root, "utf-8", xml_declaration=True)


TRAINERS = {"tensorflow": tensorflow, "pmml": pmml}
