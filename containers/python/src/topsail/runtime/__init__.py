"""Runs an unpacked bundle: `python -m topsail.runtime FOLDER`.

Topsail starts this in the environment that the bundle's manifest asks for. The manifest is read first, and the Python
that it names is compared with this one: unpickling what another Python has pickled can end the process without a word.
Only then is the model loaded, by the module of its runtime, and served as any other.
"""
