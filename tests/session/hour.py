# SPDX-License-Identifier: MIT
"""An ordinary hour of somebody who uses IPython every day, as keys and what
they bring.

A chapter is a list of steps, and begins at a first prompt. A step is what is
typed and what is then between the line and the next prompt, without empty
lines and without `Out[N]:`. `~` begins a pattern for the whole text, and `…`
says that only the end counts. In the keys, `{Name}` is a key, `{see:PATTERN}`
waits until the line matches up to the cursor, and `{out:PATTERN}` until the
cell that `{Run}` has started, or a list of Tab's, has that. `ended` is what a
step brings that ends the session. WORK is the working directory on the host.
"""

# It says so where that takes five seconds.
FONTS = "~(Matplotlib is building the font cache; this may take a moment\\.)?"

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
        ("%cd /tmp{Enter}", "~(?s:.*`pickleshare`.*\n)?/tmp"),
        ("os.getcwd(){Enter}", "'/tmp'"),
        ("cd -{Enter}", "~(?s:.*)"),
        ("os.getcwd() == here{Enter}", "True"),
        ("import asyncio{Enter}", ""),
        ("await asyncio.sleep(0, 'awaited'){Enter}", "'awaited'"),
    ],
    "columns": [
        ("class Score:{Enter}mean_of_all = 5{Enter}{Enter}", ""),
        ("class Frame:{Enter}score = property(lambda self: Score()){Enter}"
         "def __dir__(self): return ['score', 'grade']{Enter}"
         "def _ipython_key_completions_(self): return ['score', 'grade']"
         "{Enter}def __getitem__(self, key): return Score(){Enter}{Enter}", ""),
        ("df = Frame(){Enter}", ""),
        ("df.gr{Tab}{see:df\\.grade$}{Ctrl-C}", "~.*"),
        ("df.sco{Tab}{see:df\\.score$}.mean{Tab}{see:mean_of_all$}{Enter}",
         "5"),
        ("df['gr{Tab}{see:df\\['grade'?\\]?$}{Ctrl-C}", "~.*"),
    ],
    "arrays": [
        ("import numpy{Enter}", ""),
        ("a = numpy.zeros(2, dtype=[('speed', float), ('wide', int)]){Enter}",
         ""),
        ("a['sp{Tab}{out:speed}{Ctrl-U}a.mea{Tab}{see:a\\.mean$}{Ctrl-C}",
         "~.*"),
    ],
    "frames": [
        ("import pandas{Enter}", ""),
        ("df = pandas.DataFrame({'score': [1, 2], 'name': ['x', 'y']}){Enter}",
         ""),
        ("df{Enter}", "   score name\n0      1    x\n1      2    y"),
        ("pandas.DataFrame({'column %d' % i: range(99) for i in range(20)})"
         "{Enter}",
         "~(?s) +column 0 .* column 3  \\.\\.\\.  column 16 .*\n"
         "\\[99 rows x 20 columns\\]"),
    ],
    "shell": [
        ("x = !echo one; echo two{Enter}", ""),
        ("x, x.s, x.n{Enter}", "(['one', 'two'], 'one two', 'one\\ntwo')"),
        ("v = 5{Enter}", ""),
        ("!echo {v + 1} $v{Enter}", "6 5"),
        ("!echo {nosuch}{Enter}", "{nosuch}"),
        ("_exit_code{Enter}", "0"),
        ("%cat hour.py{Enter}", "~(?s)import sys\n.*"),
        ("%env A=5{Enter}", "env: A=5"),
        ("%env A{Enter}", "'5'"),
    ],
    "bare words": [
        ("cat hour.py{Enter}", "~(?s)import sys\n.*"),
        ("cp hour.py b.py{Enter}", ""),
        ("ls *.py{Enter}", "b.py  hour.py"),
        ("rm b.py{Enter}", ""),
        ("ls *.py{Enter}", "hour.py"),
        ("run hour.py 1{Enter}", "ran ['1']"),
        ("timeit -n 2 -r 2 1 + 1{Enter}", "~[\\d.]+ .?s ± .*2 .*"),
        ("env B=5{Enter}", "env: B=5"),
    ],
    "what was run": [
        ("x = 3{Enter}", ""),
        ("!echo {x}{Enter}", "3"),
        ("_i, _ii, _i1{Enter}", "('!echo {x}', 'x = 3', 'x = 3')"),
        ("In[1]{Enter}", "'x = 3'"),
    ],
    "after an error": [
        ("def g(n):{Enter}return 1 / n{Enter}{Enter}", ""),
        ("g(0){Enter}", "…ZeroDivisionError: division by zero"),
        ("%tb{Enter}", "…ZeroDivisionError: division by zero"),
        ("%debug{Run}{out:(db>|\\(Pdb\\))$}p 6 * n{Enter}{out:^0$}q{Enter}",
         "~(?s).*return 1 / n.*"),
        ("%psource g{Enter}", "def g(n):\n    return 1 / n"),
        ("import warnings{Enter}", ""),
        ("warnings.warn('w'){Enter}",
         "~.*UserWarning: w\n  warnings.warn\\('w'\\)"),
        ("warnings.warn('w'){Enter}",
         "~.*UserWarning: w\n  warnings.warn\\('w'\\)"),
    ],
    "questions": [
        ("import os; os.environ['PAGER'] = 'cat'{Enter}", ""),
        ("def h():{Enter}'how it is done'{Enter}{Enter}", ""),
        ("help(h){Enter}",
         "Help on function h in module __main__:\nh()\n    how it is done"),
        ("*open*?{Enter}", "open"),
    ],
    "exit": [("v = 1{Enter}", ""), ("exit{Enter}", "ended")],
    "quit": [("quit{Enter}", "ended")],
    "exit()": [("exit(){Enter}", "ended")],
    "paste": [
        ("{paste:def g(n):\n    if n:\n        return 1\n    return 0\n}"
         "{Enter}", ""),
        ("g(1), g(0){Enter}", "(1, 0)"),
        ("{paste:>>> y = 5\n>>> y * 2\n}{Enter}", "10"),
        ("{paste:In [1]: z = 2\n\nIn [2]: z + y\n}{Enter}", "7"),
    ],
}

# Where the two differ: what comes here, what comes there, and why. Keys that
# differ, too, are a pair.
DIFFER = {
    "columns": [
        *((*step, step[1], "") for step in BOTH["columns"][:3]),
        (("df['sc{Tab}{see:df\\['score'\\]$}{Ctrl-C}",
          "df['sc{Tab}{out:%%script|score}{Ctrl-U}{Enter}"), "~.*", "~.*",
         "a key is the only thing that can stand there"),
        (("df[['grade', 'sc{Tab}{see:'score'$}{Ctrl-C}",
          "df[['grade', 'sc{Tab}{out:%%script|score}{Ctrl-U}{Enter}"), "~.*", "~.*",
         "so it is in a list of keys"),
        (("df['score'].mean{Tab}{see:mean_of_all$}{Ctrl-C}",
          "df['score'].mean{Tab}{Ctrl-U}{Enter}"), "~.*", "~.*",
         "a copy of Python may run the code that this needs"),
    ],
    "questions": [
        *((*step, step[1], "") for step in BOTH["questions"][:2]),
        ("h?{Enter}", "h()\nhow it is done",
         "~(?s)Signature: h\\(\\)\nDocstring: how it is done\nFile: .*",
         "the file of a cell says nothing"),
        ("h??{Enter}", "def h():\n    'how it is done'",
         "~(?s)Signature: h\\(\\)\nSource:\ndef h\\(\\):.*", "the same"),
        ("?{Enter}", "~(?s):upload .*", "~(?s)IPython -- An enhanced .*",
         "what there is differs"),
        ("help{Enter}", "~(?s):upload .*", "~Type help\\(\\) for .*",
         "the person asks for help, and this is the help"),
        ("*int*?{Enter}", "~(?s)FloatingPointError\nInterruptedError\n.*",
         "~(?s)FloatingPointError\nbreakpoint\nint\n.*",
         "a large letter counts as a small one"),
    ],
    "sys.exit()": [
        ("import sys; kept = 1; sys.exit(3){Enter}",
         "¦ [the cell ended with exit status 3 · the session goes on · "
         "exit or Ctrl-D leaves]",
         "~(?s)An exception has occurred, use %tb .*",
         "the line says what goes on, and how to leave"),
        ("kept{Enter}", "1", "1", ""),
        ("open('s.py', 'w').write('left = 1\\nimport sys\\nsys.exit(2)\\n');"
         "{Enter}", "", "", ""),
        ("%run s.py{Enter}", "~¦ \\[the cell ended with exit status 2 .*",
         "~(?s)An exception has occurred, use %tb .*", "the same"),
        ("left{Enter}", "1", "1", ""),
        ("def f(): exit(){Enter}{Enter}", "", "", ""),
        ("f(){Enter}", "~¦ \\[the cell ended with exit status 0 .*", "ended",
         "only exit alone leaves: code that calls it, as one finds it, does not"),
    ],
    "figures": [
        ("import matplotlib; matplotlib.use('Agg'); "
         "import matplotlib.pyplot as plt{Enter}", FONTS, FONTS, ""),
        ("plt.plot([1, 2]){Enter}", "~(?s)▀.*:download figure-1\\.png\\]",
         "~\\[<matplotlib.*>\\]", "a picture is what the person wants"),
        ("plt.get_fignums(){Enter}", "[]", "[1]",
         "what was drawn is closed: the next plot begins a new figure"),
        ("plt.plot([1, 2]);{Enter}", "~(?s)▀.*:download figure-2\\.png\\]", "",
         "the semicolon hides the value, not the picture"),
        ("plt.figure(figsize=(3, 2)); plt.plot([3]); plt.show(){Enter}",
         "~(?s)▀.*figure 3 · 300x200 .*", "~(?s).*", "show() shows"),
        ("plt.get_fignums(){Enter}", "[]", "[1, 2]", "and closes"),
    ],
    "threads and walls": [
        ("import threading, time{Enter}", "", "", ""),
        ("threading.Thread(target=time.sleep, args=(99,), daemon=True).start()"
         "{Enter}", "¦ [1 thread is stopped until the next cell]", "",
         "nothing runs here between cells"),
        ("'a' * 10**13{Enter}",
         "~(?s).*MemoryError\n¦ \\[memory limit: 512 MiB · variables kept\\]",
         "~(?s).*MemoryError: ?",
         "the limit is the session's, not the machine's"),
        ("open('WORK/hour.py').read(6){Enter}",
         "~(?s).*FileNotFoundError: .*\n¦ \\[the jail has no host files · .*",
         "'import'", "that is what the jail is for"),
        ("import urllib.request as u; u.urlopen('http://127.0.0.1:9'){Enter}",
         "~(?s).*unreachable>\n¦ \\[there is no network in the jail\\]",
         "…Connection refused>", "the same"),
    ],
    "long values and mistakes": [
        ("list(range(1003)){Enter}",
         "~(?s)\\[0, 1, .*, 999, \\.\\.\\.\\]\n"
         "¦ \\[the first 1,000 items are shown · :out 1 for all\\]",
         "~(?s)\\[0,\n 1,\n.*\n 999,\n \\.\\.\\.\\]",
         "as many, on a screen instead of a thousand lines"),
        (("def f(:{Enter}", "def f(:{Enter}{see:^ +\\.\\.\\.:}{Alt-Enter}"),
         "…SyntaxError: invalid syntax", "…SyntaxError: invalid syntax",
         "no further line can mend this one"),
    ],
    "magics": [
        ("first = 1{Enter}", "", "", ""),
        ("!false{Enter}", "exit status 1", "", "a command that fails is seen"),
        ("%hist -n{Enter}", "   1: first = 1\n   2: !false",
         "   1: first = 1\n   2: !false\n   3: %hist -n",
         "what only asks the session is no cell"),
        ("%history -g first*{Enter}", "first = 1", "~(?s).*1: first = 1\n.*",
         "the same"),
        ("%who int{Enter}", "first  int  28 B  1", "first",
         "there is room for the value"),
        ("In[2]{Enter}", "'!false'", "\"get_ipython().system('false')\"",
         "it is what was typed"),
        ("%reset -f{Enter}", "~(?s)¦ \\[a fresh Python .*", "",
         "it can be taken back, and says so"),
        ("first{Enter}", "~(?s).*name 'first' is not defined.*",
         "…name 'first' is not defined", ""),
    ],
}

# IPython loses a key that comes while it gives the terminal to input(), and has
# no `:` commands. Of the other keys it has none, or has another: its F2 calls an
# editor. Behind a frame it answers Tab, but on a busy host not each time.
HERE = {
    "more keys": [
        ("'one two'{Left}{Alt-T}{Enter}", "'two one'"),
        ("2 + 3{Ctrl-_}{Ctrl-_}{Alt-E}{Alt-E}{see:2 \\+ 3$}{Enter}", "5"),
        ("'one'{Home}{Alt-U}{Ctrl-_}{Alt-E}{Enter}", "'ONE'"),
        ("%env EDITOR=sed -i s/2/3/{Enter}", "env: EDITOR=sed -i s/2/3/"),
        ("2 * 2{Ctrl-X}{Ctrl-E}{see:3 \\* 2$}{Enter}", "6"),
        ("{F3}if 1:{Enter}    print('in'){Enter}{Enter}print('out'){F3}{Enter}",
         "in\nout"),
        ("2 ** {F1}{see:2 \\*\\*$}3{Enter}", "…8"),
    ],
    "columns of a frame": [
        ("import pandas{Enter}", ""),
        ("df = pandas.DataFrame({'score': [1, 2], 'name': ['x', 'y']}){Enter}",
         ""),
        ("df.sco{Tab}{see:df\\.score$}.medi{Tab}{see:median$}(){Enter}", "1.5"),
        ("df['sco{Tab}{see:df\\['score'\\]$}.max(){Enter}", "2"),
        # (what pandas imports for it takes longer than Tab may)
        ("df.describe().shape{Enter}", "(8, 1)"),
        ("df.describe().ilo{Tab}{see:iloc$}[-1, 0]{Enter}", "2.0"),
        ("df.loc[df['name'] == 'x', 'sc{Tab}{see:'score'$} ].sum(){Enter}", "1"),
    ],
    "input": [
        ("input('name? '){Run}{out:^name\\?}Ada{Enter}", "name? Ada\n'Ada'"),
    ],
    "a line of the shell again": [
        ("n = 6{Enter}", ""),
        ("!echo {n}{Enter}", "6"),
        (":edit{Enter}{see:!echo .n.$} 7{Enter}", "6 7"),
        (":save s.py{Enter}", "~cells .* → s\\.py"),
        (":load s.py{Enter}", "6\n6 7"),
    ],
}

# The modules that a chapter imports.
NEEDS = {"arrays": "numpy", "frames": "pandas", "columns of a frame": "pandas",
         "figures": "matplotlib"}
