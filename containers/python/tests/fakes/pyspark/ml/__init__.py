from pathlib import Path

from ..sql import Frame


class PipelineModel:
    """Multiplies the sum of the features by what its file says."""

    def __init__(self, factor):
        self.factor = factor

    @classmethod
    def load(cls, path):
        return cls(float(Path(path.removeprefix("file://"), "metadata", "part-0").read_text()))

    def save(self, place):
        file = Path(place.removeprefix("file://"), "metadata", "part-0")
        file.parent.mkdir(parents=True)
        file.write_text(str(self.factor))

    def transform(self, frame):
        return Frame([row | {"prediction": sum(row["features"].toArray()) * self.factor} for row in frame])
