# SPDX-License-Identifier: MIT
"""An ordinary hour of somebody who uses IPython every day, as keys and what
they bring.

A chapter is a list of steps, and begins at a first prompt. A step is what is
typed and what is then between the line and the next prompt, without empty
lines and without `Out[N]:`. `~` begins a pattern for the whole text, and `…`
says that only the end counts. In the keys, `{Name}` is a key, `{see:PATTERN}`
waits until the line matches up to the cursor, and `{out:PATTERN}` until the
cell that `{Run}` has started writes that.
"""

FILE = ("hour.py", "import sys\nfrom_file = 7 * 6\nprint('ran', sys.argv[1:])\n")

BOTH = {
    "values": [
        ("6 * 7{Enter}", "42"),
        ("_ + 1{Enter}", "43"),
        ("__{Enter}", "42"),
        ("Out[1], _2{Enter}", "(42, 43)"),
        ("x = 3{Enter}", ""),
        ("x{Enter}", "3"),
        ("x;{Enter}", ""),
        ("None{Enter}", ""),
        ("print('a', 'b', sep='-'){Enter}", "a-b"),
        ("'é' * 3{Enter}", "'ééé'"),
        ("a, *b = range(4); b{Enter}", "[1, 2, 3]"),
        ("f'{x!r:>4}|'{Enter}", "'   3|'"),
        ("{'b': 1, 'a': [1, 2]}{Enter}", "{'b': 1, 'a': [1, 2]}"),
    ],
    "keys on a line": [
        ("1 + 2{Home}3 + {Enter}", "6"),
        ("2{Ctrl-A}1 + {Ctrl-E} + 3{Enter}", "6"),
        ("10{Left}2{Enter}", "120"),
        ("wrong{Ctrl-U}7{Enter}", "7"),
        ("8 wrong{Ctrl-W}{Backspace}{Enter}", "8"),
        ("'a' + 'b'{Left}{Left}{Left}{Left}{Left}{Left}{Ctrl-K}{Enter}",
         "'a'"),
        ("1 + 2{Ctrl-A}{Ctrl-K}{Ctrl-Y} + 3{Enter}", "6"),
        ("'one two'{Left}{Alt-B}{Alt-D}2{Enter}", "'one 2'"),
        ("'one two'{Left}{Alt-B}{Alt-B}{Alt-F}s{Enter}", "'ones two'"),
        ("12{Home}{Delete}{Enter}", "2"),
        ("123{Left}{Left}{Ctrl-D}{Enter}", "13"),
        ("21{Left}{Ctrl-T}{Enter}", "12"),
        ("5{Ctrl-L}{see:5$} + 5{Enter}", "10"),
        ("lost{Ctrl-C}", "~.*"),
        ("'still here'{Enter}", "'still here'"),
    ],
    "words": [
        ("'one two'{Home}{Alt-U}{Enter}", "'ONE two'"),
        ("'ONE TWO'{Home}{Alt-L}{Alt-L}{Enter}", "'one two'"),
        ("'oNE_tWO x2y'{Home}{Alt-C}{Alt-C}{Enter}", "'One_Two X2Y'"),
        ("'one'{Left}{Left}{Left}{Alt-U}{Enter}", "'oNE'"),
        ("'äöü' ''{Home}{Alt-U}{Enter}", "'ÄÖÜ'"),
        ("'one'{Home}{Alt-U}{Ctrl-_}{Enter}", "'one'"),
        ("x = 5{Enter}", ""),
        ("x + 6{Enter}", "11"),
        ("1 + {Alt-.}{see:6$}{Alt-.}{see:1 \\+ 5$}{Enter}", "6"),
        ("'a b'{Enter}", "'a b'"),
        ("{Alt-.}{see:'a b'$}{Ctrl-_} * 2{Left}{Left}{Left}{Left}{Alt-.}{Enter}",
         "'a ba b'"),
    ],
    "cuts": [
        ("1{Ctrl-U}2{Ctrl-U}{Ctrl-Y}{Enter}", "2"),
        ("{Ctrl-Y}{Alt-Y}{see:1$}{Enter}", "1"),
        ("{Ctrl-Y}{Alt-Y}{Alt-Y}{see:1$}{Enter}", "1"),
        ("3{Ctrl-U}4 + {Ctrl-Y}{Alt-Y}{see:1$}{Alt-Y}{see:4 \\+ 2$}{Enter}", "6"),
    ],
    "history": [
        ("first = 1{Enter}", ""),
        ("second = 2{Enter}", ""),
        ("first + second{Enter}", "3"),
        ("{Up}{see:first \\+ second$} + 10{Enter}", "13"),
        ("{Up}{Up}{Up}{Up}{see:first = 1$}1{Enter}", ""),
        ("first{Enter}", "11"),
        ("sec{Up}{see:second = 2$}2{Enter}", ""),
        ("second{Enter}", "22"),
        ("{Up}{Up}{Down}{see:second$}{Enter}", "22"),
        ("{Ctrl-P}{Ctrl-P}{Ctrl-N}{see:second$} + 1{Enter}", "23"),
    ],
    "blocks": [
        ("for i in range(3):{Enter}print(i){Enter}{Enter}", "0\n1\n2"),
        ("def double(n):{Enter}return 2 * n{Enter}{Enter}", ""),
        ("double(21){Enter}", "42"),
        ("for i in 1, 2:{Enter}for j in 3, 4:{Enter}print(i * j){Enter}"
         "{Enter}", "3\n4\n6\n8"),
        ("class P:{Enter}def __repr__(self):{Enter}return 'P!'{Enter}"
         "{Enter}", ""),
        ("P(){Enter}", "P!"),
        ("with open('t.txt', 'w') as f:{Enter}f.write('two\\nlines\\n');"
         "{Enter}{Enter}", ""),
        ("sum(1 for _ in open('t.txt')){Enter}", "2"),
        ("[n for n in range(10){Enter}if n % 2]{Enter}", "[1, 3, 5, 7, 9]"),
    ],
    "errors": [
        ("1/0{Enter}", "…ZeroDivisionError: division by zero"),
        ("nothing{Enter}", "…NameError: name 'nothing' is not defined"),
        ("1 +{Enter}", "…SyntaxError: invalid syntax"),
        ("int('x'){Enter}", "…ValueError: invalid literal for int() with "
                            "base 10: 'x'"),
        ("kept = 1{Enter}", ""),
        ("def spin():{Enter}print('on'){Enter}while True: pass{Enter}{Enter}",
         ""),
        ("spin(){Run}{out:^on$}{Ctrl-C}", "~(?s).*KeyboardInterrupt:? ?"),
        ("kept{Enter}", "1"),
        ("import time{Enter}", ""),
        # A Ctrl-C in the instant before a sleep does not shorten that.
        ("print('on'); [time.sleep(.1) for _ in range(999)]{Run}"
         "{out:^on$}{Ctrl-C}",
         "~(?s).*KeyboardInterrupt:? ?"),
        ("kept + 1{Enter}", "2"),
    ],
    "completion": [
        ("import itertools{Enter}", ""),
        ("import collec{Tab}{see:import collections$}{Enter}", ""),
        ("collections.Cou{Tab}{see:Counter$}('aab')['a']{Enter}", "2"),
        ("itertools.chain.from_i{Tab}{see:from_iterable$}"
         "([[1], [2]]);{Enter}", ""),
        ("some_long_name = 5{Enter}", ""),
        ("some_l{Tab}{see:some_long_name$} + 1{Enter}", "6"),
        ("'x'.uppe{Tab}{see:upper$}(){Enter}", "'X'"),
    ],
    "habits": [
        ("!echo from the shell{Enter}", "from the shell"),
        ("%timeit -n 2 -r 2 1 + 1{Enter}", "~[\\d.]+ .?s ± .*2 .*"),
        ("%time 20 + 1{Enter}", "~(?s).*\\b21\\b.*"),
        ("%run hour.py one two{Enter}", "ran ['one', 'two']"),
        ("from_file{Enter}", "42"),
        ("import os; here = os.getcwd(){Enter}", ""),
        ("%cd /tmp{Enter}", "/tmp"),
        ("os.getcwd(){Enter}", "'/tmp'"),
        ("cd -{Enter}", "~.*"),
        ("os.getcwd() == here{Enter}", "True"),
        ("import asyncio{Enter}", ""),
        ("await asyncio.sleep(0, 'awaited'){Enter}", "'awaited'"),
    ],
    "paste": [
        ("{paste:def g(n):\n    if n:\n        return 1\n    return 0\n}"
         "{Enter}", ""),
        ("g(1), g(0){Enter}", "(1, 0)"),
        ("{paste:>>> y = 5\n>>> y * 2\n}{Enter}", "10"),
        ("{paste:In [1]: z = 2\n\nIn [2]: z + y\n}{Enter}", "7"),
    ],
}

# IPython loses a key that comes while it gives the terminal to input(). Of the
# other keys it has none, or has another: its F2 calls an editor.
HERE = {
    "more keys": [
        ("'one two'{Left}{Alt-T}{Enter}", "'two one'"),
        ("2 + 3{Ctrl-_}{Ctrl-_}{Alt-E}{Alt-E}{see:2 \\+ 3$}{Enter}", "5"),
        ("'one'{Home}{Alt-U}{Ctrl-_}{Alt-E}{Enter}", "'ONE'"),
        ("%env EDITOR=sed -i s/2/3/{Enter}", "env: EDITOR=sed -i s/2/3/"),
        ("2 * 2{Ctrl-X}{Ctrl-E}{see:3 \\* 2$}{Enter}", "6"),
        ("{F3}if 1:{Enter}    print('in'){Enter}{Enter}print('out'){F3}{Enter}",
         "in\nout"),
        ("2 ** {F1}{see:2 \\*\\*$}3{Enter}", "8"),
    ],
    "input": [
        ("input('name? '){Run}{out:^name\\?}Ada{Enter}", "name? Ada\n'Ada'"),
    ],
}
