# SPDX-License-Identifier: GPL-2.0-or-later
"""Arguments of the sub-commands written in Python."""

import argparse
import sys


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose complaint is one line, like the shell's."""

    def error(self, message):
        name = self.prog.removeprefix('./erdma ')
        print(f'erdma: {name}: {message} (see {self.prog} -h)',
              file=sys.stderr)
        sys.exit(2)
