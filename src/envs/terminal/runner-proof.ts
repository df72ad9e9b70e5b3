import type { Box, PutFile } from '../../sandbox/index.ts'

/** On the path of Python, where runners find it by themselves and nothing that isolates itself (`-I`, `-E`) is disturbed. */
const directory = '/.paddock-proof'
const reports = `${directory}/reports`

/**
 * A plugin of pytest (8, `_pytest/hookspec.py`; found by its entry point) that says when a session begins and how it ended.
 * Scores nothing. Workers of xdist are part of a session.
 */
const plugin = `import os, time
_report = os.path.join(${JSON.stringify(reports)}, '%d-%d' % (os.getpid(), time.time_ns()))
def _say(word):
    try:
        with open(_report, 'a') as report: report.write(word + '\\n')
    except OSError: pass
def pytest_sessionstart(session):
    if not hasattr(session.config, 'workerinput'): _say('began')
def pytest_unconfigure(config):
    if not hasattr(config, 'workerinput'): _say('ended %d' % _status)
_status = 0
def pytest_sessionfinish(session, exitstatus):
    global _status
    _status = int(exitstatus)
`

const files: readonly PutFile[] = [
  { path: 'reports/', data: '', mode: 0o1777, uid: 0, gid: 0 },
  ...Object.entries({
    'paddock_proof.py': plugin,
    'paddock_proof-1.dist-info/METADATA': 'Metadata-Version: 2.1\nName: paddock-proof\nVersion: 1\n',
    'paddock_proof-1.dist-info/entry_points.txt': '[pytest11]\npaddock_proof = paddock_proof\n',
  }).map(([path, data]) => ({ path, data, mode: 0o644, uid: 0, gid: 0 })),
]

/** Puts the plugin into a verifier's box; the answer is the command with which runners find it. */
export async function withRunnerProof(box: Box, command: readonly string[]): Promise<readonly string[]> {
  await box.putFiles(directory, files)
  const script = `export PYTHONPATH="\${PYTHONPATH:+$PYTHONPATH:}${directory}"; exec "$@"`
  return ['/bin/sh', '-c', script, 'sh', ...command]
}

/**
 * What the sessions of pytest in a verifier's box say against its reward; null for nothing, also where there were none.
 * Code under test that ends its runner (`os._exit`) leaves a session without an end; whoever writes a full reward behind a
 * runner's back is contradicted by sessions of which none passed.
 */
export async function againstReward(box: Box, reward: number): Promise<string | null> {
  if (reward <= 0) return null
  const { entries } = await box.getFiles(reports)
  const sessions = entries.flatMap((entry) => {
    if (entry.type !== 'file') return []
    const words = Buffer.from(entry.data).toString()
    return words.includes('began') ? [/^ended (\d+)$/m.exec(words)?.[1] ?? null] : []
  })
  if (sessions.length === 0 || sessions.includes('0')) return null
  if (sessions.every((status) => status === null)) return 'pytest was ended before its session was over'
  return reward >= 1 ? 'no session of pytest passed' : null
}
