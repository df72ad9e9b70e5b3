"""Runs SQL in a box: one JSON request per line on stdin, one JSON answer per line on stdout, told apart by their `id`.

Handed to `python3 -I -S -c` by the host, followed by the file of one engine (`sqlite.py`, `duckdb.py`, `postgres.py`) and a
call of `main`, so that no file of it lies in the box. Statements run in children, which are killed with SIGKILL at their
deadline: no handler inside an engine stops one long function call. Where a verdict hangs on it, time in which a
statement stood ready and the machine gave it no processor is not the statement's. A child that read may be asked again, each time over
connections of its own, so that nothing stays between two statements; one that wrote, or ran out of memory, is not.
"""
import collections
import gc
import json
import mmap
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class Refused(Exception):
    pass


class TooLarge(Exception):
    pass


class SqlError(Exception):
    """What an engine says of a statement; `kind` as in the answer."""

    def __init__(self, message, kind="sql"):
        super().__init__(message)
        self.kind = kind


def encode(value):
    """Cells are null or a text whose first letter says the storage class; no number goes through JSON."""
    if value is None:
        return None
    if isinstance(value, int):
        return "i" + str(value)
    if isinstance(value, float):
        return "r" + repr(value)
    if isinstance(value, str):
        return "t" + value
    return "b" + value.hex()


class Shown:
    """The rows of one result as they are told, at most so many and so large."""

    def __init__(self, max_rows, max_bytes):
        self.max_rows, self.max_bytes = max_rows, max_bytes
        self.rows, self.size, self.more = [], 0, False

    def takes(self):
        """Whether one more row is shown; if not, there are more than are told."""
        self.more = len(self.rows) >= self.max_rows or self.size > self.max_bytes
        return not self.more

    def require_fitting(self, value):
        if isinstance(value, (str, bytes)) and len(value) > self.max_bytes:
            raise TooLarge(f"a value of length {len(value)} is more than can be shown; take a part of it")
        return value

    def add(self, values):
        cells = [encode(self.require_fitting(value)) for value in values]
        self.size += sum(len(cell) if cell is not None else 4 for cell in cells)
        self.rows.append(cells)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def op_submit(request):
    """Keeps the submission. The first one counts: guessing again and again must not pay."""
    try:
        descriptor = os.open(request["path"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return {"taken": False}
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(request["sql"])
    return {"taken": True}


def op_time(request):
    """Seconds of several runs of one reading statement, all its rows fetched; the first run, which warms, is not told."""
    run = TIMED[0](request)
    run()
    seconds, until = [], time.perf_counter() + request["budgetMs"] / 1000
    while len(seconds) < request["runs"] and (not seconds or time.perf_counter() < until):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return {"seconds": seconds}


def generate(request, out):
    """Runs the generator of a database with another seed: a neighbour of the same shape with other content."""
    if os.path.exists(out):
        os.unlink(out)
    command = [sys.executable, "-I", "-c", request["script"], out, str(request["seed"])]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise Refused("the generator failed: " + done.stderr.decode("utf-8", "replace")[-400:])


# What an engine fills in.
OPS = {"submit": op_submit, "time": op_time}
# Makes of a request of `time` a function that runs its statement once.
TIMED = []
STATEMENT_ERRORS = []
# Called in the child before its work: address space that it needs beside `memoryMb`, in bytes.
PREPARE = []
# Called with the shared bytes of a child that was killed: ends what works for it elsewhere.
END = []
# Called with a request when its child is done with it, in a process of its own: removes what it left.
TIDY = []
# Operations whose child may be asked again.
READS = {"query", "sample", "tables", "describe"}
# Eight bytes; a child shares its own with its parent.
SHARED = bytearray(8)


TOLD = "the results are more than can be told"


def answer(request):
    try:
        return {"status": "ok", **OPS[request["op"]](request)}
    except Refused as error:
        return failed("refused", error)
    except TooLarge as error:
        return failed("too_large", error)
    except MemoryError:
        return failed("memory", "out of memory")
    except SqlError as error:
        return failed(error.kind, error)
    except (*STATEMENT_ERRORS, UnicodeError, ValueError) as error:
        return failed("memory" if "out of memory" in str(error) else "sql", error)
    except Exception as error:  # our own fault, which the host tells
        return failed("broken", repr(error))


def failed(kind, message):
    return {"status": "error", "kind": kind, "message": str(message)}


def line_of(request, told):
    return json.dumps({"id": request["id"], **told}).encode() + b"\n"


def work(requests, answers, shared):
    """The life of a child. It has the ends of its own two pipes and of nothing else."""
    global SHARED
    SHARED = shared
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for number, own in ((0, null), (1, null), (3, os.dup(requests)), (4, os.dup(answers))):
        os.dup2(own, number)
    os.closerange(5, 256)
    limited = False
    for count, line in enumerate(open(3, "rb", closefd=False)):
        request = json.loads(line)
        if not limited:
            memory = (request["memoryMb"] << 20) + sum(prepare(request) for prepare in PREPARE)
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
            limited = True
        try:
            told = answer(request)
            data = line_of(request, told)
            if len(data) > request.get("maxTold", len(data)):
                told = failed("too_large", TOLD)
                data = line_of(request, told)
        except MemoryError:
            told = failed("memory", "out of memory")
            data = line_of(request, told)
        sound = told["status"] == "ok" or told["kind"] in ("sql", "refused", "too_large")
        # Without the collector a process grows by what errors leave behind.
        goes_on = sound and request["op"] in READS and count < 200
        data = (b"+" if goes_on else b"-") + data
        at = 0
        while at < len(data):
            at += os.write(4, data[at:at + (1 << 16)])
        if not goes_on:
            return


def starved(pid):
    """Seconds for which a process has stood ready while others had the processor: of its threads, the most."""
    try:
        threads = [f"/proc/{pid}/task/{name}/schedstat" for name in os.listdir(f"/proc/{pid}/task")]
        return max(int(open(thread).read().split()[1]) for thread in threads) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0  # a kernel that does not tell


class Child:
    """A process that answers one request after the other."""

    def __init__(self):
        self.shared = mmap.mmap(-1, 8)
        theirs, self.requests = os.pipe()
        self.answers, own = os.pipe()
        self.memory = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                work(theirs, own, self.shared)
                status = 0
            finally:
                os._exit(status)
        os.close(theirs)
        os.close(own)

    def ask(self, request):
        """False when it is not there any more."""
        self.request, self.parts, self.memory = request, [], request["memoryMb"]
        self.deadline = time.monotonic() + request["timeoutMs"] / 1000
        self.starved = {pid: starved(pid) for pid in self.workers()}
        data = json.dumps(request).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self.requests, data):]
            return True
        except BrokenPipeError:
            return False

    def workers(self):
        """Itself, and what works for it elsewhere."""
        return {self.pid, int.from_bytes(self.shared[:8], "little")} - {0}

    def waited(self):
        """Seconds that it stood ready in vain since it was last asked."""
        now = {pid: starved(pid) for pid in self.workers()}
        waited = max(seconds - self.starved.get(pid, 0) for pid, seconds in now.items())
        self.starved = now
        return max(waited, 0)

    def kill(self):
        # Its own group, once it has made one.
        os.killpg(self.pid, signal.SIGKILL) if os.getpgid(self.pid) == self.pid else os.kill(self.pid, signal.SIGKILL)
        self.gone()
        for end in END:
            end(self.shared)

    def gone(self):
        """Waits for its end and gives its status."""
        os.close(self.requests)
        os.close(self.answers)
        return os.waitpid(self.pid, 0)[1]


class Runner:
    """Requests and the children that answer them, at most so many at once."""

    def __init__(self, parallel, fair):
        # With `fair` a starved statement gets its time back.
        self.parallel, self.fair = parallel, fair
        self.waiting, self.idle, self.busy, self.tidying = collections.deque(), [], {}, set()
        self.told = 0
        # What became of a request that all others of its kind are asked together with: without it they need not be run.
        self.failure = None

    def serve(self):
        is_open, rest = True, b""
        while is_open or self.waiting or self.busy:
            self.start()
            sources = list(self.busy) + ([0] if is_open else [])
            for source in self.wait(sources) if sources else []:
                if source != 0:
                    self.hear(source)
                    continue
                part = os.read(0, 1 << 20)
                is_open = part != b""
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    self.take(json.loads(line))
            self.end_late()
        for child in self.idle:
            child.gone()
        for pid in self.tidying:
            os.waitpid(pid, 0)

    def take(self, request):
        if request["op"] != "cancel":
            self.waiting.append(request)
            return
        self.waiting = collections.deque(one for one in self.waiting if one["id"] != request["of"])
        for source, child in list(self.busy.items()):
            if child.request["id"] == request["of"]:
                del self.busy[source]
                child.kill()
                self.tidy(child.request)

    def start(self):
        while self.waiting and len(self.busy) < self.parallel:
            request = self.waiting.popleft()
            if self.failure is not None and request.get("together"):
                self.tell(line_of(request, self.failure))
                continue
            if request["op"] == "script":
                request["scratch"] = tempfile.mkdtemp()
            try:
                child = self.child_for(request)
            except OSError as error:  # no process can be made: those of the agent took all
                self.tell(line_of(request, failed("memory", error)))
                continue
            self.busy[child.answers] = child
        # The next one is made while nobody waits for it.
        if self.parallel > 1 and not self.idle and not self.busy:
            try:
                self.idle.append(Child())
            except OSError:
                pass

    def child_for(self, request):
        while self.idle:
            child = self.idle.pop()
            if child.memory in (None, request["memoryMb"]) and child.ask(request):
                return child
            child.kill()
        child = Child()
        child.ask(request)
        return child

    def wait(self, sources):
        """Sources that have something. Time in which this program itself stood still, as a frozen box does, is nobody's."""
        now = time.monotonic()
        soonest = min((child.deadline for child in self.busy.values()), default=None)
        patience = None if soonest is None else min(max(soonest - now, 0), 0.25)
        ready, _, _ = select.select(sources, [], [], patience)
        if patience is not None and (over := time.monotonic() - now - patience) > 0.25:
            for child in self.busy.values():
                # It may have been starved meanwhile as this program was, which is no second reason for the same time.
                child.deadline += max(over, child.waited()) if self.fair else over
        return ready

    def hear(self, source):
        child = self.busy[source]
        part = os.read(source, 1 << 20)
        if part:
            child.parts.append(part)
            if not part.endswith(b"\n"):
                return
        del self.busy[source]
        if part:
            data = b"".join(child.parts)
            if child.request.get("together") and len(data) < 1 << 20:
                told = json.loads(data[1:])
                self.failure = failed(told["kind"], told["message"]) if told["status"] == "error" else None
            self.tell_bounded(child.request, data[1:])
            if data.startswith(b"+"):
                self.idle.append(child)
            else:
                child.gone()
        else:
            status = child.gone()
            for end in END:
                end(child.shared)
            kind = "memory" if os.WIFSIGNALED(status) else "broken"
            self.tell_failure(child.request, failed(kind, "the statement was killed"))
        self.tidy(child.request)

    def end_late(self):
        now = time.monotonic()
        for source, child in list(self.busy.items()):
            if now < child.deadline:
                continue
            if self.fair and (waited := child.waited()) > 0.005:
                child.deadline += waited
                continue
            del self.busy[source]
            child.kill()
            took = f"took longer than {child.request['timeoutMs']} ms"
            self.tell_failure(child.request, failed("timeout", took))
            self.tidy(child.request)

    def tidy(self, request):
        """In a process of its own: other statements have deadlines meanwhile."""
        self.tidying = {pid for pid in self.tidying if os.waitpid(pid, os.WNOHANG)[0] == 0}
        if "scratch" not in request:
            return
        pid = os.fork()
        if pid != 0:
            self.tidying.add(pid)
            return
        try:
            shutil.rmtree(request["scratch"], ignore_errors=True)
            for tidy in TIDY:
                tidy(request)
        finally:
            os._exit(0)

    def tell_bounded(self, request, data):
        """Of all answers together no more than `maxTold` bytes: whoever listens cuts off what is beyond, and then has none."""
        if self.told + len(data) > request.get("maxTold", self.told + len(data)):
            self.tell_failure(request, failed("too_large", TOLD))
            return
        self.told += len(data)
        self.tell(data)

    def tell_failure(self, request, told):
        if request.get("together"):
            self.failure = told
        self.tell(line_of(request, told))

    def tell(self, data):
        while data:
            data = data[os.write(1, data):]


def main(parallel=1, fair=True):
    # A collection would touch every page that parent and children share, and copy it.
    gc.disable()
    Runner(parallel, fair).serve()


def stay():
    """As long as the box: other processes of its user can end this one and not look into it."""
    import ctypes
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE, prctl(2): no ptrace, no /proc/<pid>/fd or mem
    # Nothing but what the agent is told hangs on these, and whoever asks has a deadline of its own.
    main(4, fair=False)
