# SPDX-License-Identifier: MIT
"""A cell that defines deep(): directories below each other, and a file in the
last. The path to it may be longer than any path that can be opened."""
DEEP = """\
def deep(n):
    for _ in range(n):
        os.mkdir('d'); os.chdir('d')
    open('last', 'w').close()
    os.chdir('/home')
"""
