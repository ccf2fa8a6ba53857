"""`python -m topsail.runtime FOLDER`."""

import sys

from .start import main

sys.exit(main(sys.argv[1:]))
