# SPDX-License-Identifier: MIT
#
# awaits.py - run a cell with an await outside of functions
#
# Runs in:   the guest, inside call(), at the first such cell
# Holds:     the session's loop: tasks of one cell go on while a later one waits
# Trusts:    as cells.py
# Leaves:    nothing; an interrupt cancels the cell, and no other task
def awaited(coroutine):
    asyncio = stdlib("asyncio")
    # The descriptors with which a loop waits do not outlive its process: after
    # a kill, a copy of the process goes on.
    if S.loop is None or S.loop.is_closed() or S.loop_pid != getpid():
        S.loop, S.loop_pid = asyncio.new_event_loop(), getpid()
    asyncio.set_event_loop(S.loop)
    task = S.loop.create_task(coroutine)
    try:
        S.loop.run_until_complete(task)
    except KeyboardInterrupt as e:
        where = e
        try:
            # A task that the interrupt has ended would never stop the loop.
            if task.cancel():
                S.loop.run_until_complete(task)
        except asyncio.CancelledError as cancelled:
            where = cancelled
        raise e.with_traceback(users(where)) from None
    except BaseException as e:
        raise e.with_traceback(users(e))


def users(e):
    "the traceback from the cell on, without the frames of the loop"
    tb = e.__traceback__
    while tb and tb.tb_frame.f_globals is not NS:
        tb = tb.tb_next
    return tb
