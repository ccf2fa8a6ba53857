"""A model in R, packed by hand. It needs R with jsonlite where it runs: on Debian r-base-core and r-cran-jsonlite."""

from pathlib import Path

import topsail
from topsail.bundle import PYTHON, Manifest, build

file = Path(__file__).with_name("forecast.R")
manifest = Manifest("r", file.name, PYTHON, input_type="doubles", example=[1.0, 2.0, 4.0])

forecast = topsail.deploy_bundle("forecast", build(manifest, {file.name: file.read_bytes()}))
print(forecast, "says", forecast.predict([3.0, 4.0, 5.0, 6.0]).output)
