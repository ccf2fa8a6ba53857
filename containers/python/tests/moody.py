"""A program that serves its model itself; it is well as long as no file says otherwise."""

from models import FOLDER, first

import topsail


class Moody:
    def predict(self, xs):
        return first(xs)

    def health(self):
        if (FOLDER / "raise").exists():
            raise RuntimeError("no idea")
        return not (FOLDER / "ill").exists()


topsail.serve(Moody(), input_type="doubles", health_every=0.02)
