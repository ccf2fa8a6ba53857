class Vectors:
    def __init__(self, values):
        self.values = values

    @staticmethod
    def dense(values):
        return Vectors(values)

    def toArray(self):
        return self.values
