"""Says what a machine lacks before .venv is made, with the Debian packages that bring it.

Runs on the system's Python, whatever its version, so it keeps to what every Python 3 understands.
"""

import importlib.util
import os
import shutil
import sys
import sysconfig


def main():
    missing = []
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(
            "BrookMQ needs Python 3.11 to 3.13, this is %d.%d; choose one with: make PYTHON=python3.11 ..."
            % sys.version_info[:2]
        )
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        sys.exit("Python's venv module is missing. On Debian: apt-get install python3-venv")
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        missing.append("python3-dev")
    if not (shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")):
        missing.append("gcc")
    if missing:
        print("note: without a C compiler and Python's headers BrookMQ runs as plain Python, many times slower.")
        print("      On Debian: apt-get install %s, then: make distclean setup" % " ".join(missing))


main()
