"""A program that never asks whether it is `__main__`: `python spawning.py METHOD KIND`. Its model, or the stage of its
pipeline, starts a process by that method of multiprocessing, and answers with how that ended."""

import multiprocessing
import sys

from models import reach

import topsail

METHOD, KIND = sys.argv[1:]


def help_out():
    reach("helped")


class Spawning:
    def setup(self):
        helper = multiprocessing.get_context(METHOD).Process(target=help_out)
        helper.start()
        helper.join()
        self.status = helper.exitcode

    def predict(self, xs):
        return [float(self.status) for _ in xs]


pipeline = topsail.Pipeline()
pipeline.add(Spawning)
topsail.serve(Spawning if KIND == "model" else pipeline, input_type="doubles")
