# SPDX-License-Identifier: MIT
"""Lines of a session about a course. tests/maker/test_submit.py hands in."""
import time

NOW = time.time()       # one for all: at midnight the weekday is another
COURSE = ("-s", "lab.course=python1", "-s", "lab.exercise=4",
          "-s", "lab.submit=/srv/nowhere/{course}")


def due(seconds, form="lab.deadline=%Y-%m-%d %H:%M"):
    return "-s", time.strftime(form, time.localtime(NOW + seconds))


def test_the_banner_says_what_is_due(cb):
    s = cb.session(*COURSE, *due(2 * 86400))
    day = due(2 * 86400, "%A")[1]
    assert f"course python1: exercise 4 due {day} " in s.all_text()
    assert ":submit FILE" in s.all_text()
    s = cb.session(*COURSE, *due(-86400))
    assert "exercise 4 was due" in s.all_text()
    assert "course" not in cb.session("-q", *COURSE).all_text()
    assert "course" not in cb.session().all_text()


def test_without_a_place_or_a_maker_nothing_is_handed_in(cb):
    s = cb.session()
    assert "lab.submit" in s.run(":submit a.py")
    s = cb.session(*COURSE)
    s.run("_ = open('a.py', 'w').write('x')")
    assert "no such file" in s.run(":submit b.py")
    said = s.run(":submit a.py")
    assert "nothing was handed in" in said and "/run/cellblock/maker" in said
    assert "/run/cellblock/maker" in s.run(":submit")
    assert s.run("6 * 7") == "42"


def test_a_locked_session_names_the_way_that_there_is(cb):
    for remote in "yes", "no":
        s = cb.session("-s", "policy.locked=yes",
                       "-s", f"files.remote={remote}")
        s.run("_ = open('a.py', 'w').write('x')")
        for command in ":upload a.py", ":download a.py":
            said = " ".join(s.run(command).replace("¦", "").split())
            assert "names no directory" in said, said
            assert ("scp copies into" in said) == (remote == "yes"), said


def test_tab_offers_files_of_the_home(cb):
    s = cb.session(*COURSE)
    s.run("_ = open('exercise.py', 'w').write('x')")
    s.type(":submit ex\t")
    s.expect(":submit exercise.py")
    s.type("\x15")


def test_a_deadline_that_is_none_is_an_error_of_the_configuration(cb):
    r = cb.run("-s", "lab.deadline=Friday", "-c", "1")
    assert r.code == 2 and "a local time such as 2026-12-04 18:00" in r.said
    r = cb.run("-s", "lab.course=../x", "-c", "1")
    assert r.code == 2 and "expected a name" in r.said
