# SPDX-License-Identifier: MIT
"""Functions that a hostile object runs when Python is asked about it."""

HARMS = """\
import os, threading, time
def loops():
    while True: pass
def sleeps(): time.sleep(60)
def eats():
    kept = []
    while True: kept.append(bytearray(1 << 20))
def forks():
    while True: os.fork()
def writes(): open("new", "w").write("x")
def prints():
    print("printed"); os.write(1, b"printed"); os.write(2, b"printed")
def rings(): os.write(os.open("/dev/tty", os.O_WRONLY), b"printed")
def ends(): os._exit(3)
def leaves(): raise SystemExit(4)
def dies(): os.kill(os.getpid(), 9)
"""
