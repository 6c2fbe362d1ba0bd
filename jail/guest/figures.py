# SPDX-License-Identifier: MIT
#
# figures.py - pieces of a report, and matplotlib's figures among them
#
# Runs in:   the guest, after a cell, as its user's code does
# Trusts:    the front end. What is reported is the user's: anything
# Leaves:    in the report, after a line "png BYTES", a picture of each figure
FIGURES = 20


def piece(report, name, data):
    data = b"%s %d\n" % (name, len(data)) + data
    while data:
        data = data[write(report, data):]


def tell_figures(report, plt):
    "the figures that are open; reported ones are closed"
    try:
        import io
        for number in plt.get_fignums()[:FIGURES]:
            data = io.BytesIO()
            plt.figure(number).savefig(data, format="png")
            plt.close(number)
            piece(report, b"png", data.getvalue())
    except Exception:
        pass
