"""Asks about all pictures that the models have not seen, many at a time."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import png
import train

import topsail

_, pictures, _, digits = train.split()
pictures = [png.write(np.rint(x.reshape(8, 8) * (255 / 16))) for x in pictures]

with topsail.Client() as client, ThreadPoolExecutor(16) as threads:
    answers = list(threads.map(lambda picture: client.predict("read-digit", picture), pictures))

right = sum(a.output == int(digit) for a, digit in zip(answers, digits, strict=True))
print(f"{len(answers)} pictures: {right} right, {sum(a.default for a in answers)} without an answer in time")
