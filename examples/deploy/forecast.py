"""A model in R. It needs R with jsonlite where it runs: on Debian r-base-core and r-cran-jsonlite."""

from pathlib import Path

import topsail

file = Path(__file__).with_name("forecast.R")
forecast = topsail.deploy_r("forecast", file, example=[1.0, 2.0, 4.5])
print(forecast, "says", forecast.predict([3.0, 4.0, 5.0, 6.0]).output)
