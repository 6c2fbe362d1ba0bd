# SPDX-License-Identifier: MIT
#
# values.py - show a container that is wider than the terminal
#
# Runs in:   the guest, at the first such value
# Trusts:    as cells.py
# Leaves:    nothing
LONGEST = 100000  # beyond that, laying out takes longer than reading


def laid_out(value, text):
    "the value over several lines; `text` is its repr"
    if len(text) > LONGEST or "\n" in text:
        return text
    return stdlib("pprint").pformat(
        value, width=columns(), compact=True, sort_dicts=False)
