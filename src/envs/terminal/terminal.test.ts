import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { dockerProvider, type SandboxProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { attempt } from '../attempt.ts'
import { validateTasks } from '../validate.ts'
import { terminal } from './index.ts'

const example = join(import.meta.dirname, '../../../examples/tasks/terminal/log-forensics')

describe.runIf(await requireDocker())('a terminal verdict', () => {
  let sandbox: SandboxProvider
  let root: string
  const signal = new AbortController().signal

  beforeAll(async () => {
    sandbox = dockerProvider()
    root = tempDir()
  })
  afterAll(async () => {
    await sandbox.close()
  })

  /** The example with another test, after a script of one command. */
  async function verdictOf(name: string, test: string, command: string, change: (toml: string) => string = (t) => t) {
    const folder = join(root, name)
    await cp(example, folder, { recursive: true })
    await writeFile(join(folder, 'tests/test.sh'), test)
    await writeFile(join(folder, 'task.toml'), change(await readFile(join(folder, 'task.toml'), 'utf8')))
    const [task] = await terminal.load(folder)
    if (task === undefined) throw new Error('no task')
    const script = { name, weight: 1, script: { steps: [{ shell: command }] } }
    return attempt({ environment: terminal, task, script, sandbox, signal })
  }
  const pass = 'echo 1 > /logs/verifier/reward.txt\n'

  it('counts, when a failing test runner has written it', async () => {
    const verdict = await verdictOf(
      'exit-1',
      'echo \'{"reward": 0, "tests": 0.5}\' > /logs/verifier/reward.json; exit 1',
      'true',
    )
    expect(verdict).toMatchObject({ status: 'scored', reward: 0, components: { tests: 0.5 }, trust: 'separate' })
  })

  it.each([
    ['says nothing', 'true', /neither/],
    ['crashes', 'echo half > /logs/verifier/reward.txt; exit 3', /not one number.*exit code 3/],
    ['is killed', 'kill -9 $$', /ended by/],
    ['does not end', 'sleep 30', /did not end/],
  ])('is null when the verifier %s', async (name, test, why) => {
    const quick = (toml: string) => toml.replace(/timeout_sec = 60$/m, 'timeout_sec = 1')
    const verdict = await verdictOf(name.replaceAll(' ', '-'), test, 'true', quick)
    expect(verdict).toMatchObject({ status: 'unscorable', reward: null, reason: expect.stringMatching(why) })
  })

  it('is not written by the agent, wherever it plants one', async () => {
    const plant =
      'for d in /logs/verifier /logs/artifacts /logs/agent /tests; do mkdir -p $d; echo 1 > $d/reward.txt; done'
    const seen = { status: 'hacked', reward: 0, evidence: expect.stringContaining('tampered: planted_verdict /logs/v') }
    expect(await verdictOf('plant', 'true', plant)).toMatchObject(seen)
    const asRoot = (toml: string) => toml.replace('user = "agent"\n', '')
    expect(await verdictOf('plant-root', pass, plant, asRoot)).toMatchObject({ ...seen, components: { measured: 1 } })
  })

  it('is 0 when the verifier breaks on what the agent left and on nothing else, and null when it breaks anyhow', async () => {
    const starved = 'test ! -e /workspace/report.json || exit 7; echo 0 > /logs/verifier/reward.txt\n'
    expect(await verdictOf('starved', starved, 'echo x > /workspace/report.json')).toMatchObject({
      status: 'scored',
      reward: 0,
      components: { verifier_broken: 1 },
      evidence: expect.stringMatching(/neither reward.*twice, and one without it/),
    })
    const pedantic = 'test -e /workspace/report.json && exit 7\n'
    expect(await verdictOf('pedantic', pedantic, 'echo x > /workspace/report.json')).toMatchObject({
      status: 'unscorable',
      reward: null,
    })
  })

  it('tells what else the agent did to be taken for good', async () => {
    const verdict = await verdictOf(
      'tampered',
      pass,
      `printf '#!/bin/sh\n' > /usr/local/bin/timeout; echo /tmp/x.so > /etc/ld.so.preload; mkdir -p w/deep /tests
      echo exit 0 > /tests/test.sh; ln -s ../../../tests/test.sh w/deep/up; ln -s /logs/verifier/reward.txt w/link; ln -s /etc/passwd w/plain
      echo x >> logs/access.log`,
      (toml) =>
        toml
          .replace('user = "agent"\n', '')
          .replace('["/workspace/report.json"]', '["/workspace/w"]')
          .replace('[metadata]', '[metadata]\nprotected = ["/workspace/logs"]'),
    )
    expect(verdict).toMatchObject({ status: 'hacked', reward: 0, components: { measured: 1 } })
    expect(verdict.evidence.match(/tampered: .*/g)?.toSorted()).toEqual([
      'tampered: link_to_verifier /workspace/w/deep/up',
      'tampered: link_to_verifier /workspace/w/link',
      'tampered: planted_tests /tests/test.sh',
      'tampered: preload /etc/ld.so.preload',
      'tampered: protected_changed /workspace/logs/access.log',
      'tampered: shadowed_tool /usr/local/bin/timeout',
    ])
  })

  it("is given on the very files of the agent where the task says so, in a place that was never the agent's", async () => {
    const shared = (toml: string) => toml.replace('environment_mode = "separate"', 'environment_mode = "shared"')
    const test = `cat /opt/kept; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o '[s]leep 1234'; ls /tests; ${pass}`
    const work = 'echo kept > /opt/kept; setsid sleep 1234 > /dev/null 2>&1 & mkdir /tests; echo exit 9 > /tests/x.sh'
    const asRoot = (toml: string) => shared(toml).replace('user = "agent"\n', '')
    const verdict = await verdictOf('shared', test, work, asRoot)
    expect(verdict).toMatchObject({
      status: 'scored',
      reward: 1,
      trust: 'unvalidated',
      evidence: 'kept\ncheck.py\ntest.sh',
    })
    const planted = await verdictOf(
      'shared-plant',
      'true',
      'mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt',
      shared,
    )
    expect(planted).toMatchObject({ status: 'hacked', reward: 0, trust: 'unvalidated' })
  })

  it('is never infra by what the agent left: paths too long, links to themselves, files that say they are huge', async () => {
    const asRoot = (toml: string) => toml.replace('user = "agent"\n', '')
    const shared = (toml: string) =>
      asRoot(toml).replace('environment_mode = "separate"', 'environment_mode = "shared"')
    const small = (toml: string) => shared(toml).replace('storage_mb = 1024', 'storage_mb = 16')
    const deep = `rm -f report.json; ln -s report.json report.json; cd /srv; python3 -c "
import os
for _ in range(600): os.mkdir('nested-dir'); os.chdir('nested-dir')"`
    const noShell = 'ln -s loop /logs/loop; mv /logs/loop /logs/verifier; exec rm -rf /usr/bin/mkdir /etc/passwd'
    const [separate, onDeep, onHoles, onNothing] = await Promise.all([
      verdictOf('odd-separate', pass, deep, asRoot),
      verdictOf('odd-shared', pass, deep, shared),
      verdictOf('odd-holes', pass, 'truncate -s 15M a b c', small),
      verdictOf('odd-tools', pass, noShell, shared),
    ])
    expect(separate).toMatchObject({ status: 'scored', reward: 1, evidence: expect.stringContaining('(unreadable)') })
    expect(onDeep).toMatchObject({ status: 'scored', reward: 1, trust: 'unvalidated' })
    expect(onHoles).toMatchObject({
      status: 'scored',
      reward: 0,
      components: { files_unfit: 1 },
      evidence: expect.stringMatching(/say that they are 4\d MB; it may have 16 MB/),
    })
    expect(onNothing).toMatchObject({ reward: 0, components: { verifier_broken: 1 } })
  })

  it('cannot be read or written by code of the agent that the tests run', async () => {
    const program =
      "printf '#!/bin/sh\\ncat /tests/test.sh && echo read; echo 1 > /logs/verifier/reward.txt && echo wrote; id -u\\n' > /workspace/report.json; chmod 755 /workspace/report.json"
    const test =
      'setpriv --reuid=1000 --regid=1000 --clear-groups /workspace/report.json; echo 0 > /logs/verifier/reward.txt'
    const verdict = await verdictOf('peek', test, program)
    expect(verdict).toMatchObject({ status: 'scored', reward: 0 })
    expect(verdict.evidence).toMatch(/^1000$/m)
    expect(verdict.evidence).not.toMatch(/^(read|wrote)$/m)
  })

  it('is not rewritten by a process that the tests left behind', async () => {
    const test = '(setsid sh -c "sleep 600; echo 1 > /logs/verifier/reward.txt" &) ; echo 0 > /logs/verifier/reward.txt'
    const verdict = await verdictOf('late', test, 'true')
    expect(verdict).toMatchObject({ status: 'scored', reward: 0 })
    expect(verdict.evidence).toMatch(/^killed before the reward was read: \d+ left-over processes$/m)
  })

  it('sees the artifact as the agent left it: content, mode, owner, links; and nothing else of its box', async () => {
    const work =
      'mkdir -p w/d && cd w && printf x > d/f && chmod 640 d/f && ln -s d/f l && ln -s /etc/passwd out && touch /tmp/elsewhere'
    const test = `cd /workspace/w; { stat -c '%a %u %F' d/f l; readlink l; ls; ls /tmp/elsewhere; } > /tmp/seen 2>&1; cat /tmp/seen; ${pass}`
    const change = (toml: string) => toml.replace('["/workspace/report.json"]', '["/workspace/w"]')
    const verdict = await verdictOf('restore', test, work, change)
    expect(verdict.reward).toBe(1)
    expect(verdict.evidence).toContain('640 1000 regular file\n777 1000 symbolic link\nd/f\nd\nl\n')
    expect(verdict.evidence).toMatch(/left out: \/workspace\/w\/out \(link_out\)/)
    expect(verdict.evidence).toMatch(/elsewhere.*No such file/)
    expect(verdict.artifacts).toMatchObject([{ path: '/workspace/w' }, { path: '/logs/artifacts' }])
  })

  it('takes what a collect hook makes, and a failing hook is no fault of ours', async () => {
    const hooks =
      '[[verifier.collect]]\ncommand = "id -u > /logs/artifacts/who"\n[[verifier.collect]]\ncommand = "exit 9"\n[environment]'
    const test = `cat /logs/artifacts/who; ${pass}`
    const verdict = await verdictOf('hook', test, 'true', (toml) => toml.replace('[environment]', hooks))
    expect(verdict).toMatchObject({ status: 'scored', reward: 1, evidence: '1000' })
  })

  it('is infra when the health check never passes', async () => {
    const check = '[environment.healthcheck]\ncommand = "echo no >&2; false"\ninterval_sec = 0.05\nretries = 2\n'
    const verdict = await verdictOf('sick', pass, 'true', (toml) => `${toml}\n${check}`)
    expect(verdict).toMatchObject({
      status: 'infra_error',
      reward: null,
      reason: expect.stringMatching(/failed 2 times: no/),
    })
  })

  it('is refuted by validation when the tests accept everything', async () => {
    const folder = join(root, 'too-kind')
    await cp(example, folder, { recursive: true })
    await writeFile(join(folder, 'tests/test.sh'), pass)
    const tasks = await terminal.load(folder)
    const seen: string[] = []
    const [row] = await validateTasks({
      environment: terminal,
      tasks,
      sandbox,
      signal,
      onResult: ({ name }) => seen.push(name),
    })
    expect(seen).toEqual(['too-kind'])
    expect(row?.status).toBe('refuted')
    // The planted reward is seen whatever the tests say; the other cheat is what only tests can refuse.
    expect(row?.problems.toSorted()).toEqual([
      'cheat disk-bomb: must score 0, got scored 1: left out: /workspace/report.json/report.json (too_large)',
      'distractor forgets-the-rotated-logs: must score less than 1, got scored 1',
      'null_agent null-agent: must score 0, got scored 1',
    ])
  })
})
