"""Scale, then shift: two stages, three processes. `topsail local` starts it; it can also be run in one process:

python -c 'import pipeline; print(pipeline.p.run_local([[3], [4]], input_type="doubles"))'
"""

import topsail


class Scale:
    def predict(self, inputs):
        return [float(x[0]) * 2 for x in inputs]


class Shift:
    def predict(self, numbers):
        return [x + 3 for x in numbers]


p = topsail.Pipeline()
p.add(Scale, workers=2)
p.add(Shift, batch="aimd")

if __name__ == "__main__":  # so that the pipeline can be imported and tried, too
    topsail.serve(p, input_type="doubles", input_length=1)
