import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { pack } from 'tar-stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PaddockError, type Task } from '../../src/core/index.ts'
import { type Environment, terminal, unpackArtifact } from '../../src/envs/index.ts'
import {
  appendLate,
  referenceAgent,
  type Rescored,
  rescoreRollouts,
  Verifications,
  VerifyJobs,
  verifyOrder,
} from '../../src/rollout/index.ts'
import { verdictInForce } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { openWorld, terminalTask, type World } from './world.ts'
import { requireDocker } from '../../src/testing/sandbox/index.ts'

describe.runIf(await requireDocker())('rescore', () => {
  let world: World
  let directory: string
  let rolloutId: string

  beforeAll(async () => {
    world = await openWorld()
    directory = tempDir()
    const task = await terminalTask('log-forensics')
    await world.script(task, (await terminal.scripts.oracle(task)).script.steps)
    const { rollouts } = await world.run({ tasks: [task], harness: referenceAgent() })
    expect(rollouts).toMatchObject([{ verdict: { status: 'scored', reward: 1 } }])
    rolloutId = rollouts[0]?.rolloutId ?? ''
  })
  afterAll(async () => {
    await world[Symbol.asyncDispose]()
  })

  const rescore = async (
    o: {
      readonly of?: string
      readonly tasks?: readonly Task[]
      readonly dryRun?: boolean
      readonly environment?: Environment
    } = {},
  ): Promise<Rescored | undefined> => {
    const { catalogue, blobs, recorder } = world.store
    const { environment = terminal, of = rolloutId, ...others } = o
    const rollouts = [await catalogue.rollout(of)]
    const signal = new AbortController().signal
    const common = {
      store: { catalogue, blobs, recorder },
      environment: () => environment,
      sandbox: world.sandbox,
      rollouts,
      signal,
    }
    return (await rescoreRollouts({ ...common, ...others }))[0]
  }
  const inForce = async () => verdictInForce((await world.store.catalogue.rollout(rolloutId)).verdicts)

  /** The same task with other tests, which look at the agent's file all the same. */
  const withTests = async (name: string, reward: string): Promise<Task> => {
    const [task] = await terminal.load(join(import.meta.dirname, '../../examples/tasks/terminal/log-forensics'))
    if (task === undefined) throw new Error('no task')
    const source = join(directory, name)
    await cp(task.source, source, { recursive: true })
    await writeFile(join(source, 'tests/test.sh'), `ls -R /workspace\necho ${reward} > /logs/verifier/reward.txt\n`)
    return { ...task, source }
  }

  test('the same verifier changes nothing', async () => {
    const before = await inForce()
    expect(await rescore()).toMatchObject({ outcome: 'same', after: null })
    expect(await inForce()).toEqual(before)
  })

  test("a changed verifier gets the agent's files again, and its verdict supersedes the old one", async () => {
    const before = await inForce()
    const tasks = [await withTests('half', '0.5')]
    const dry = await rescore({ tasks, dryRun: true })
    expect(dry).toMatchObject({ outcome: 'changed', detail: 'scored 1 -> scored 0.5' })
    expect(await inForce()).toEqual(before)
    const done = await rescore({ tasks })
    expect(done).toMatchObject({ outcome: 'changed', after: { reward: 0.5, supersedes: before?.id } })
    expect(done?.after?.verifier.sha256).not.toBe(before?.verifier.sha256)
    expect(done?.after?.artifacts).toEqual(before?.artifacts)
    const { verdicts } = await world.store.catalogue.rollout(rolloutId)
    expect(verdicts).toHaveLength(2)
    expect(await inForce()).toEqual(done?.after)
    expect(await rescore({ tasks })).toMatchObject({ outcome: 'same' })
  })

  test('the same files, brought as work from elsewhere, get the same verdict', async () => {
    const [artifact] = (await inForce())?.artifacts ?? []
    if (artifact === undefined) throw new Error('no artifact')
    const { content } = await unpackArtifact({ ...artifact, data: await world.store.blobs.get(artifact.sha256) })
    const tar = pack()
    for (const entry of content.entries)
      if (entry.type === 'file') tar.entry({ name: artifact.path.slice(1) }, Buffer.from(entry.data))
    tar.finalize()
    const jobs = new VerifyJobs({
      store: world.store,
      here: ({ order, ...asked }, signal) =>
        verifyOrder({ ...asked, sandbox: async () => world.sandbox, signal }, order),
      places: 1,
      onFailure: (error) => expect(error).toBeNull(),
    })
    const verifications = new Verifications({
      store: world.store,
      own: { task: () => Promise.reject(new Error('no run of a trainer')) },
      environment: () => Promise.resolve(terminal),
      jobs,
      onFailure: () => undefined,
    })
    const { taskDigest } = await world.store.catalogue.rollout(rolloutId)
    const work = { key: 'k', token: 'ann', task: taskDigest, runId: null, answer: null, archive: await buffer(tar) }
    const found = await verifications.verify(work, { waitMs: 120_000, signal: new AbortController().signal })
    await verifications.close()
    await jobs.close()
    expect(found).toMatchObject({
      state: 'done',
      record: { verdict: { status: 'scored', reward: 1, trust: 'separate', components: { attacker: 1, stolen: 1 } } },
    })
  })

  test('another verifier with the same outcome is recorded as such', async () => {
    const environment: Environment = {
      ...terminal,
      verify: async (context) => {
        const draft = await terminal.verify({ ...context, task: await withTests('again', '0.5') })
        return { ...draft, verifier: { ...draft.verifier, version: 'next' } }
      },
    }
    expect(await rescore({ environment })).toMatchObject({
      outcome: 'confirmed',
      after: { verifier: { version: 'next' } },
    })
  })

  test("what is verified on the agent's own files is verified on them again", async () => {
    const source = join(directory, 'shared')
    await cp(join(import.meta.dirname, '../../examples/tasks/terminal/log-forensics'), source, { recursive: true })
    const toml = await readFile(join(source, 'task.toml'), 'utf8')
    const shared = toml.replace('environment_mode = "separate"', 'environment_mode = "shared"')
    await writeFile(join(source, 'task.toml'), shared.replace('user = "agent"\n', ''))
    const seen = `cd /opt/made && stat -c '%a %u %F %n' . run link twin dead; readlink link; ls /etc/issue /opt/gone`
    const tests = (reward: string) =>
      writeFile(join(source, 'tests/test.sh'), `{ ${seen}; } 2>&1\necho ${reward} > /logs/verifier/reward.txt\n`)
    await tests('1')
    const [task] = await terminal.load(source)
    if (task === undefined) throw new Error('no task')
    const work = `mkdir -m 700 -p /opt/made /opt/gone && cd /opt/made && echo '#!/bin/sh' > run
      chown 1000 run && chmod 4755 run && ln -s /etc/passwd link && ln run twin && mkfifo dead && rm -r /etc/issue /opt/gone`
    await world.script(task, [{ shell: work }, { say: 'done' }])
    const { rollouts } = await world.run({ tasks: [task], harness: referenceAgent() })
    const [rollout] = rollouts
    expect(rollout?.verdict).toMatchObject({ status: 'scored', reward: 1, trust: 'unvalidated' })
    const again = await rescore({ of: rollout?.rolloutId ?? '' })
    expect(again).toMatchObject({ outcome: 'same' })
    await tests('0.5')
    const changed = await rescore({ of: rollout?.rolloutId ?? '', tasks: [task] })
    expect(changed).toMatchObject({ outcome: 'changed', after: { reward: 0.5, trust: 'unvalidated' } })
    // Owners, modes, links and what was deleted are as the agent left them.
    expect(changed?.after?.evidence).toBe(rollout?.verdict?.evidence)
    expect(changed?.after?.evidence).toContain('4755 1000 regular file run')
  })

  test('a fault of boxes and artifacts that are gone leave the verdict in force', async () => {
    const before = await inForce()
    const verify: Environment['verify'] = (context) =>
      terminal.verify({
        ...context,
        openBox: async () => {
          throw new PaddockError('SANDBOX_UNAVAILABLE', 'the daemon went away')
        },
      })
    expect(await rescore({ environment: { ...terminal, verify } })).toMatchObject({ outcome: 'infra', after: null })
    const { catalogue, recorder } = world.store
    const nothing = {
      ...world.store.blobs,
      get: async () => {
        throw new PaddockError('NOT_FOUND', 'no such blob')
      },
    }
    const [gone] = await rescoreRollouts({
      store: { catalogue, recorder, blobs: nothing },
      environment: () => terminal,
      sandbox: world.sandbox,
      rollouts: [await catalogue.rollout(rolloutId)],
      signal: new AbortController().signal,
    })
    expect(gone).toMatchObject({ outcome: 'not_stored', after: null })
    expect(await inForce()).toEqual(before)
  })

  test('a verdict that was given late stays in force, and the new one is on record', async () => {
    const store = { catalogue: world.store.catalogue, recorder: world.store.recorder }
    const late = await appendLate(store, rolloutId, { source: 'review', reward: -1 })
    const done = await rescore({ tasks: [await withTests('later', '0.25')] })
    expect(done).toMatchObject({ outcome: 'outranked', after: { reward: 0.25, by: 'verifier' } })
    expect(done?.detail).toContain('late/review')
    expect(await inForce()).toEqual(late)
    expect((await world.store.catalogue.rollout(rolloutId)).verdicts.at(-1)).toEqual(done?.after)
  })
})
