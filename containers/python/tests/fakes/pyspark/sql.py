from __future__ import annotations

import os


class Frame(list):
    def select(self, *names):
        return Frame([tuple(row[n] for n in names) for row in self])

    def collect(self):
        return list(reversed(self))  # Spark promises no order


class _Builder:
    def __init__(self):
        self.said = {}

    def master(self, master):
        if master == "nowhere":
            raise RuntimeError("Java gateway process exited")
        return self._with("master", master)

    def appName(self, name):
        return self._with("name", name)

    def config(self, name, value):
        return self._with(name, value)

    def getOrCreate(self):
        return SparkSession(self.said)

    def _with(self, name, value):
        self.said[name] = value
        return self


class _Fresh:
    def __get__(self, *_):
        return _Builder()


class SparkSession:
    builder = _Fresh()

    def __init__(self, said):
        self.said = said

    def createDataFrame(self, rows, names):
        return Frame([dict(zip(names, row, strict=True)) for row in rows])

    def stop(self):
        if folder := os.environ.get("TEST_FOLDER"):
            open(os.path.join(folder, "spark-stopped"), "w").close()
