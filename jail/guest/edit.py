# SPDX-License-Identifier: MIT
#
# edit.py - the text of the prompt in the person's editor
#
# Runs in:   the guest, at Ctrl-X Ctrl-E
# Trusts:    as cells.py; the editor is a program of the jail
# Leaves:    in the pipe of the cell's pictures a head "text N", and N bytes,
#            the last of them a line end. Nothing: the text stays as it is
EDITORS = "editor", "nano", "vim", "vi"


def edit_text(_, source):
    S.tree = compile("", "", "exec", 0x400)  # it changes no variable
    wanted, _, text = source.partition(b"\n")
    try:
        command = editor_for(wanted.decode("utf-8", "surrogateescape"))
        if command is None:
            tell("there is no editor in the jail: %env EDITOR=NAME names one\n")
        else:
            hand_text_over(command, text)
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except BaseException as e:
        tell("%s: %s\n" % (type(e).__name__, e))
    S.how = "ok"


def editor_for(wanted):
    "the words of the first of these commands that the jail has, or None"
    environ = site.os.environ
    for said in (environ.get("VISUAL"), environ.get("EDITOR"), wanted,
                 *EDITORS):
        words = stdlib("shlex").split(said or "")
        if words and stdlib("shutil").which(words[0]):
            return words


def hand_text_over(command, text):
    flush(sys.stdout, sys.stderr)
    folder = stdlib("tempfile").mkdtemp()
    path = folder + "/cell.py"
    try:
        with site.io.open(path, "wb") as f:
            f.write(text + b"\n")
        status = stdlib("subprocess").call([*command, path])
        if status:
            return tell("%s: exit status %d: the text is as it was\n" % (
                command[0], status))
        with site.io.open(path, "rb") as f:
            text = f.read().removesuffix(b"\n") + b"\n"
    finally:
        stdlib("shutil").rmtree(folder, True)
    part("pictures")
    send_all(S.pictures, (b"text %d" % len(text)).ljust(PICTURE_HEAD - 1) +
             b"\n" + text)
