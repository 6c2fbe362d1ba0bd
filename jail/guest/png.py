# SPDX-License-Identifier: MIT
#
# png.py - PNG files to pixels, where Pillow is not installed
#
# Runs in:   the guest, within a cell
# Trusts:    as cells.py; a file may hold anything, and a mistake in it is an
#            exception that the person reads
# Leaves:    nothing
CHUNK_MAX = 1 << 26
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def decoded_png(f, most):
    """As decoded() in pictures.py. More than `most` pixels: only every second
    one, or every third... of each line."""
    if f.read(8) != b"\x89PNG\r\n\x1a\n":
        raise ValueError("only PNG can be shown here: Python has no Pillow "
                         "(python3-pil), which reads the other formats")
    palette, alpha, data, head = b"", b"", [], None
    while True:
        size, kind = int.from_bytes(f.read(4), "big"), f.read(4)
        body = f.read(min(size, CHUNK_MAX))
        f.read(4)
        if len(body) < size or not kind:
            raise ValueError("the PNG file ends too early")
        if kind == b"IHDR":
            head = body
        elif kind == b"PLTE":
            palette = body
        elif kind == b"tRNS":
            alpha = body
        elif kind == b"IDAT":
            data.append(body)
        elif kind == b"IEND":
            break
    if head is None or len(head) != 13:
        raise ValueError("the PNG file has no head")
    width, height = (int.from_bytes(head[i:i + 4], "big") for i in (0, 4))
    depth, colour, _, _, interlaced = head[8:]
    if interlaced or colour not in CHANNELS or depth not in (1, 2, 4, 8, 16):
        raise ValueError("this kind of PNG needs Pillow (python3-pil), which "
                         "this Python does not have")
    step = 1
    while -(-width // step) * -(-height // step) > most:
        step += 1
    bits = depth * CHANNELS[colour]
    rgb, n = bytearray(), -(-width * bits // 8)
    inflate = stdlib("zlib").decompressobj()
    feed, held = iter(data), b""
    line = bytearray(n)
    for y in range(height):
        while len(held) < n + 1:
            more = inflate.unconsumed_tail or next(feed, None)
            if more is None:
                raise ValueError("the PNG file ends too early")
            held += inflate.decompress(more, n + 65536)
        line = unfiltered(held[0], bytearray(held[1:n + 1]), line,
                          max(bits // 8, 1))
        held = held[n + 1:]
        if y % step == 0:
            samples = line[::2] if depth == 16 else line if depth == 8 else \
                spread(line, depth, width, colour == 3)
            rgb += coloured(samples, colour, palette, alpha, step)
    return ((-(-width // step), -(-height // step)), bytes(rgb),
            (width, height))


def unfiltered(kind, line, above, back):
    if kind == 1:
        for i in range(back, len(line)):
            line[i] = line[i] + line[i - back] & 255
    elif kind == 2:
        for i, up in enumerate(above):
            line[i] = line[i] + up & 255
    elif kind == 3:
        for i, up in enumerate(above):
            left = line[i - back] if i >= back else 0
            line[i] = line[i] + (left + up >> 1) & 255
    elif kind == 4:
        for i, up in enumerate(above):
            left, corner = (line[i - back], above[i - back]) \
                if i >= back else (0, 0)
            by_left, by_up = abs(up - corner), abs(left - corner)
            by_corner = abs(left + up - 2 * corner)
            best = left if by_left <= by_up and by_left <= by_corner else \
                up if by_up <= by_corner else corner
            line[i] = line[i] + best & 255
    elif kind:
        raise ValueError("the PNG file is damaged")
    return line


def spread(line, depth, width, indices):
    "one byte a sample; grey from 0 to 255"
    most = (1 << depth) - 1
    out = bytearray()
    for byte in line:
        for shift in range(8 - depth, -1, -depth):
            value = byte >> shift & most
            out.append(value if indices else value * 255 // most)
    return out[:width]


def coloured(samples, colour, palette, alpha, step):
    "a line as RGB, on white"
    if colour == 2 and step == 1:
        return samples
    out = bytearray()
    for i in range(0, len(samples), CHANNELS[colour] * step):
        a = 255
        if colour == 3:
            at = samples[i]
            rgb = palette[3 * at:3 * at + 3].ljust(3, b"\0")
            a = alpha[at] if at < len(alpha) else 255
        elif colour in (0, 4):
            rgb = samples[i:i + 1] * 3
            a = samples[i + 1] if colour == 4 else 255
        else:
            rgb = samples[i:i + 3]
            a = samples[i + 3] if colour == 6 else 255
        if a != 255:
            rgb = bytes((c * a + 255 * (255 - a)) // 255 for c in rgb)
        out += rgb
    return out
