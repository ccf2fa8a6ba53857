"""A model of scikit-learn, from training to an app that answers. Start `topsail local`, and run this."""

from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import topsail

X, y = load_iris(return_X_y=True)
model = RandomForestClassifier(n_estimators=50, random_state=1).fit(X, y)

iris = topsail.deploy_sklearn("iris", model, example=X[0])
print(iris, "says", iris.predict(X[60]).output)
