import { z } from 'zod'
import type { Box, PutFile } from '../../sandbox/index.ts'

/** On the path of Python, where runners find it by themselves and nothing that isolates itself (`-I`, `-E`) is disturbed. */
const directory = '/.paddock-proof'
const reports = `${directory}/reports`

/**
 * A plugin of pytest (8, `_pytest/hookspec.py`; found by its entry point). When it is loaded, before any code of the work, it makes a child of the
 * process: the child is pytest, and the parent only hears what the child says through a pipe, waits for its end, and writes the report. So the
 * parent runs no code of the work, nothing that was said can be taken back, and a child that ends without the end of its session does not end
 * with 0. The child says which tests passed, and which code of the work it runs itself, before it runs that (an audit hook,
 * which nothing removes). Scores nothing. Workers of xdist are part of their controller's session; runs of pytest below another are not heard.
 */
const plugin = `import json, os, signal, sys, time
_pipe, _status, _seen, _root = None, 0, set(), ''
_places = [os.path.realpath(place) for place in json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'places.json')))]

def _say(*words):
    data = (json.dumps(words) + '\\n').encode()
    while _pipe is not None and data:
        try: data = data[os.write(_pipe, data):]
        except OSError: return

def _hear(pid, pipe):
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    import select
    poll, heard, done, more = select.poll(), b'', (0, 0), True
    for end in (pipe, woken): poll.register(end, select.POLLIN)
    os.set_blocking(pipe, False)
    while more:
        done = os.waitpid(pid, os.WNOHANG)
        more = done[0] == 0
        if more: poll.poll()
        try:
            while True: os.read(woken, 4096)
        except BlockingIOError: pass
        try:
            while True:
                part = os.read(pipe, 65536)
                if not part:
                    poll.unregister(pipe)
                    pipe = os.open('/dev/null', os.O_RDONLY)
                    break
                heard += part
        except BlockingIOError: pass
        except KeyError: pass
    says = [json.loads(line) for line in heard.split(b'\\n')[:-1]]
    ends = [words[1] for words in says if words[0] == 'ended']
    ended = ends[-1] if len(ends) == says.count(['began']) else None
    code = done[1] >> 8 if done[1] & 127 == 0 else 128 + (done[1] & 127)
    if ['began'] in says:
        of = lambda what: sorted({words[1] for words in says if words[0] == what})
        report = {'ended': ended, 'code': code, 'passed': of('passed'), 'inside': of('inside')}
        with open(os.path.join(${JSON.stringify(reports)}, '%d-%d' % (os.getpid(), time.time_ns())), 'w') as file: json.dump(report, file)
        if code == 0 and ended != 0:
            sys.stderr.write('pytest ended with 0 before its session was over\\n')
            code = ended or 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

def _audit(event, args):
    if event != 'exec' or not hasattr(args[0], 'co_filename'): return
    path = os.path.realpath(args[0].co_filename)
    if path in _seen: return
    _seen.add(path)
    if any(path == place or path.startswith(place.rstrip('/') + '/') for place in _places): _say('inside', path)

if 'PADDOCK_PROOF' not in os.environ:
    sys.stdout.flush()
    sys.stderr.flush()
    _from, _pipe = os.pipe()
    _pid = os.fork()
    if _pid:
        os.close(_pipe)
        _hear(_pid, _from)
    os.close(_from)
    os.environ['PADDOCK_PROOF'] = '1'
    try: __import__('ctypes').CDLL(None).prctl(1, 9)
    except Exception: pass
if hasattr(sys, 'addaudithook'): sys.addaudithook(_audit)

def pytest_sessionstart(session):
    global _root
    _root = str(getattr(session.config, 'rootpath', None) or session.config.rootdir)
    if not hasattr(session.config, 'workerinput'): _say('began')
def pytest_runtest_logreport(report):
    if report.when == 'call' and report.outcome == 'passed' and not hasattr(report, 'wasxfail'):
        file = os.path.realpath(os.path.join(_root, report.location[0]))
        _say('passed', '::'.join([file] + report.nodeid.split('::')[1:]))
def pytest_sessionfinish(session, exitstatus):
    global _status
    _status = int(exitstatus)
    if hasattr(session.config, 'workerinput'):
        session.config.workeroutput['paddock_inside'] = [path for path in _seen if any(path.startswith(place) for place in _places)]
def pytest_unconfigure(config):
    if not hasattr(config, 'workerinput'): _say('ended', _status)
class _OfXdist:
    def pytest_testnodedown(self, node, error):
        for path in getattr(node, 'workeroutput', {}).get('paddock_inside', []): _say('inside', path)
def pytest_configure(config):
    if config.pluginmanager.hasplugin('xdist') and not hasattr(config, 'workerinput'): config.pluginmanager.register(_OfXdist())
`

/** Puts the plugin into a verifier's box; the answer is the command with which runners find it. `work`: places of the agent's work. */
export async function withRunnerProof(
  box: Box,
  command: readonly string[],
  work: readonly string[],
): Promise<readonly string[]> {
  const files: readonly PutFile[] = [
    { path: 'reports/', data: '', mode: 0o1777, uid: 0, gid: 0 },
    ...Object.entries({
      'paddock_proof.py': plugin,
      'places.json': JSON.stringify(work),
      'paddock_proof-1.dist-info/METADATA': 'Metadata-Version: 2.1\nName: paddock-proof\nVersion: 1\n',
      'paddock_proof-1.dist-info/entry_points.txt': '[pytest11]\npaddock_proof = paddock_proof\n',
    }).map(([path, data]) => ({ path, data, mode: 0o644, uid: 0, gid: 0 })),
  ]
  await box.putFiles(directory, files)
  const script = `export PYTHONPATH="\${PYTHONPATH:+$PYTHONPATH:}${directory}"; exec "$@"`
  return ['/bin/sh', '-c', script, 'sh', ...command]
}

const session = z.object({
  /** Status that the session ended with; null: it never ended. */
  ended: z.number().nullable(),
  /** How the process ended. */
  code: z.number(),
  passed: z.array(z.string()),
  inside: z.array(z.string()),
})

/** The sessions of pytest in a verifier's box. */
export interface RunnerReport {
  /** Ids of the tests that passed in any session. */
  readonly passed: ReadonlySet<string>
  /** Files of the work that ran in the process of the tests. */
  readonly inside: readonly string[]
  /** Why a full reward is no full one; null: nothing speaks against it. */
  readonly against: string | null
  /** The runner was ended by somebody who wanted it to look as if it had passed. */
  readonly isForged: boolean
}

/** Reads the reports of a box; null if no session of pytest left one that can be read. */
export async function runnerReport(box: Box): Promise<RunnerReport | null> {
  const { entries } = await box.getFiles(reports)
  const sessions = entries.flatMap((entry) => {
    if (entry.type !== 'file') return []
    const parsed = session.safeParse(jsonOf(entry.data))
    return parsed.success ? [parsed.data] : []
  })
  if (sessions.length === 0) return null
  const passed = new Set(sessions.flatMap((one) => one.passed))
  const isForged = sessions.some(({ ended, code }) => code === 0 && ended === null)
  const hasPassed = sessions.some((one) => one.ended === 0 && one.passed.length > 0)
  const against = isForged
    ? 'pytest was ended before its session was over'
    : hasPassed
      ? null
      : 'no session of pytest passed a test and ended well'
  return { passed, inside: [...new Set(sessions.flatMap(({ inside }) => inside))], against, isForged }
}

function jsonOf(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data).toString())
  } catch {
    return null
  }
}
