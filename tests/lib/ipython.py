# SPDX-License-Identifier: MIT
"""IPython on a terminal, beside which ours is tried."""
import os
import re
import shutil
import termios

import term

# Debian's, unless another is named.
PATH = shutil.which(os.environ.get("CELLBLOCK_TEST_IPYTHON",
                                   "/usr/bin/ipython3"))


class IPython(term.Session):
    """Its prompt has a number."""

    def __init__(self, world, size, *args):
        # Two things of it go by how fast the host is: a thread that saves the
        # history, which the next prompt reads, and an answer of the terminal
        # about the cursor, which is echoed when it comes too late.
        super().__init__(
            [PATH, "--no-banner", "--colors=NoColor", "--no-confirm-exit",
             "--HistoryManager.db_cache_size=1000", *args],
            {**world.env, "IPYTHONDIR": str(world.home / "ipython"),
             "PROMPT_TOOLKIT_NO_CPR": "1"}, size=size, cwd=world.work)

    def reads_keys(self):
        """Whether its terminal library reads the terminal, which a prompt on
        the screen alone does not say: a key that comes before or after is the
        terminal's to echo and to translate."""
        return self.screen.bracketed_paste and \
            not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def at_prompt(self):
        row = self.screen.cursor_row()
        return bool(re.fullmatch(r"In \[\d+\]:", row)) and \
            self.screen.cursor.x == len(row) + 1 and self.reads_keys()
