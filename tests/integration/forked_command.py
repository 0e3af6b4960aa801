"""One ``omnirl`` command in a process forked for it, which spares it the seconds that imports take.

Run by path with ARGUMENTS, FOLDER and OUTPUT (a file that is appended to) set.
"""

# ruff: noqa: F821
import os
import sys

from omnirl.cli.app import main

with open(OUTPUT, "a", encoding="utf-8", buffering=1) as stream:
    sys.stdout = sys.stderr = stream
    os.chdir(FOLDER)
    sys.argv = ["omnirl", *ARGUMENTS]
    main()
