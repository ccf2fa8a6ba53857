"""Makes iris.pmml and wine.pmml, with scikit-learn: `python make.py`. The files are in the repository; this says where from."""

from xml.etree import ElementTree as xml

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier


def document(description, fields):
    """A document with its fields: a name for a number, or a name with its categories."""
    root = xml.Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
    xml.SubElement(root, "Header", description=description)
    dictionary = xml.SubElement(root, "DataDictionary", numberOfFields=str(len(fields)))
    for name, categories in fields.items():
        kind = {"optype": "categorical", "dataType": "string"} if categories else {"optype": "continuous", "dataType": "double"}
        field = xml.SubElement(dictionary, "DataField", name=name, **kind)
        for category in categories:
            xml.SubElement(field, "Value", value=category)
    return root


def mining_schema(model, fields, target):
    schema = xml.SubElement(model, "MiningSchema")
    for name in fields:
        xml.SubElement(schema, "MiningField", name=name, **({"usageType": "target"} if name == target else {}))


def write(root, name):
    xml.indent(root)
    xml.ElementTree(root).write(name, encoding="UTF-8", xml_declaration=True)


def iris():
    data = load_iris()
    names = [name.removesuffix(" (cm)").replace(" ", "_") for name in data.feature_names]
    classes = [str(name) for name in data.target_names]
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(data.data, data.target).tree_
    fields = dict.fromkeys(names, ()) | {"species": classes}
    root = document("The species of an iris, in cm.", fields)
    model = xml.SubElement(root, "TreeModel", modelName="iris", functionName="classification", splitCharacteristic="binarySplit")
    mining_schema(model, fields, "species")

    def node(parent, i, predicate):
        counts = tree.value[i][0] * tree.n_node_samples[i]
        at = xml.SubElement(parent, "Node", id=str(i), score=classes[counts.argmax()], recordCount=f"{counts.sum():g}")
        at.append(predicate)
        for label, count in zip(classes, counts):
            xml.SubElement(at, "ScoreDistribution", value=label, recordCount=f"{count:g}")
        if tree.children_left[i] >= 0:
            split = {"field": names[tree.feature[i]], "value": repr(float(tree.threshold[i]))}
            node(at, tree.children_left[i], xml.Element("SimplePredicate", operator="lessOrEqual", **split))
            node(at, tree.children_right[i], xml.Element("SimplePredicate", operator="greaterThan", **split))

    node(model, 0, xml.Element("True"))
    write(root, "iris.pmml")


def wine():
    """How much alcohol a wine has, from two measurements and its cultivar."""
    data = load_wine()
    cultivars = {"barolo": 0, "grignolino": 1, "barbera": 2}
    numbers = ["proline", "color_intensity"]
    column = dict(zip(data.feature_names, data.data.T))
    rows = np.column_stack([column[name] for name in numbers] + [data.target == i for i in cultivars.values()])
    line = LinearRegression(fit_intercept=False).fit(rows, column["alcohol"])
    fields = dict.fromkeys(numbers, ()) | {"cultivar": list(cultivars), "alcohol": ()}
    root = document("The alcohol of a wine, in percent.", fields)
    model = xml.SubElement(root, "RegressionModel", modelName="wine", functionName="regression")
    mining_schema(model, fields, "alcohol")
    table = xml.SubElement(model, "RegressionTable", intercept="0")
    for name, coefficient in zip(numbers, line.coef_):
        xml.SubElement(table, "NumericPredictor", name=name, coefficient=repr(float(coefficient)))
    for name, coefficient in zip(cultivars, line.coef_[len(numbers) :]):
        xml.SubElement(table, "CategoricalPredictor", name="cultivar", value=name, coefficient=repr(float(coefficient)))
    write(root, "wine.pmml")


if __name__ == "__main__":
    iris()
    wine()
