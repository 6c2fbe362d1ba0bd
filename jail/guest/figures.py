# SPDX-License-Identifier: MIT
#
# figures.py - pieces of a report, and matplotlib's figures among them
#
# Runs in:   the guest, after a cell, as its user's code does
# Trusts:    the front end. The report has bytes of the user's: anything
# Leaves:    in the report, after a line "png BYTES", a picture of each figure
FIGURES = 20


def piece(report, name, data):
    data = b"%s %d\n" % (name, len(data)) + data
    while data:
        data = data[write(report, data):]


def printed(figure):
    from io import BytesIO
    data = BytesIO()
    figure.savefig(data, format="png")
    return data.getvalue()


def tell_figures(report, plt):
    "the figures that are open; reported ones are closed"
    try:
        for number in plt.get_fignums()[:FIGURES]:
            data = printed(plt.figure(number))
            plt.close(number)
            piece(report, b"png", data)
    except Exception:
        pass
