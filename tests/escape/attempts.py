# SPDX-License-Identifier: MIT
"""All attempts, as one list of rows."""
import attempts_files
import attempts_kernel
import attempts_namespaces
import attempts_processes
import attempts_terminal

ROWS = (attempts_files.ROWS + attempts_namespaces.ROWS
        + attempts_processes.ROWS + attempts_kernel.ROWS
        + attempts_terminal.ROWS)

assert len({r.name for r in ROWS}) == len(ROWS), "two rows share a name"
