"""A module beside the tests, as a data scientist has one beside the notebook: no package has it."""

import clerk_tools

RATE = 10.0


def total(inputs):
    return [clerk_tools.add(x) * RATE for x in inputs]


class Clerk:
    def setup(self):
        self.rate = RATE

    def predict(self, inputs):
        return [clerk_tools.add(x) * self.rate for x in inputs]
