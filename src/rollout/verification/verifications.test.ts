/** What becomes of work that is brought when a verifier fails, when there is too much of it, and when Paddock stops. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { makeTask, type PaddockError, sha256, type Task } from '../../core/index.ts'
import { defineEnvironment, type Environment } from '../../envs/index.ts'
import { scored, unscored, type VerdictDraft } from '../../reward/index.ts'
import { openStore, type OwnedStore } from '../../trajectory/index.ts'
import { Verifications, verifyOrder, VerifyJobs } from './index.ts'

const facts = { verifier: { id: 'gate/one', version: '1', sha256: sha256('v') }, trust: 'host' } as const
const task = makeTask({ name: 'one', environment: 'gate', instruction: '', split: 'train', data: {}, source: '/' })
const other = makeTask({ ...task, environment: 'closed' })

let directory: string
let store: OwnedStore
let draft: () => Promise<VerdictDraft>
let asked: number
let failures: [string, PaddockError][]
let verifications: Verifications
let jobs: VerifyJobs
beforeEach(async () => {
  directory = tempDir()
  store = await openStore(directory)
  for (const one of [task, other]) await store.catalogue.putTask(one)
  asked = 0
  failures = []
  draft = () => Promise.resolve(scored(1, facts))
  verifications = made()
})
afterEach(async () => {
  await verifications.close()
  await jobs.close()
  await store.close()
})

function environment(name: string): Environment {
  return defineEnvironment({
    name,
    apiVersion: 1,
    verifierVersion: '1',
    task: z.looseObject({}),
    load: () => Promise.resolve([]),
    box: () => ({
      image: { kind: 'paddock-base' },
      profile: 'user',
      workdir: null,
      user: null,
      env: {},
      network: 'none',
      agentTimeoutMs: null,
      verifyTimeoutMs: null,
    }),
    tools: () => [],
    collect: () => Promise.resolve({ items: [] }),
    verify: ({ signal }) => {
      asked += 1
      const stopped = Promise.withResolvers<never>()
      signal.addEventListener('abort', () => stopped.reject(signal.reason))
      return Promise.race([draft(), stopped.promise])
    },
    ...(name === 'gate' ? { outside: () => ({ places: [], artifacts: () => ({ items: [] }) }) } : {}),
    scripts: { oracle: () => Promise.reject(new Error('none')), cheats: () => Promise.resolve([]) },
  })
}

function made(): Verifications {
  jobs = new VerifyJobs({
    store,
    here: ({ order, ...asked }, signal) => verifyOrder({ ...asked, sandbox: async () => ({}) as never, signal }, order),
    places: 2,
    onFailure: (error) => expect(error).toBeNull(),
  })
  return new Verifications({
    store,
    own: { task: () => Promise.reject(new Error('no run here')) },
    environment: (name) => Promise.resolve(environment(name)),
    jobs,
    onFailure: (key, error) => failures.push([key, error]),
  })
}

const ask = (key: string, o: { readonly answer?: string; readonly waitMs?: number; readonly of?: Task } = {}) =>
  verifications.verify(
    { key, token: 'ann', task: (o.of ?? task).digest, runId: null, archive: null, answer: o.answer ?? '4' },
    { waitMs: o.waitMs ?? 60_000, signal: new AbortController().signal },
  )
const look = (key: string) => verifications.look(key, { waitMs: 0, signal: new AbortController().signal })

describe('work that is brought', () => {
  it.each<[string, () => Promise<VerdictDraft>]>([
    ['a box that failed', () => Promise.resolve(unscored('infra_error', 'the daemon went away', facts))],
    ['a judge that failed', () => Promise.resolve(unscored('judge_failed', 'it misses its canaries', facts))],
  ])('gets no verdict of %s, and its key is free', async (_what, fails) => {
    const well = draft
    draft = fails
    await expect(ask('k')).rejects.toMatchObject({ code: 'VERIFY_FAILED', status: 503, family: 'infra' })
    await expect(look('k')).rejects.toMatchObject({ code: 'VERIFY_FAILED' })
    expect(failures).toMatchObject([['k', { code: 'VERIFY_FAILED' }]])
    expect(await store.catalogue.verification('k')).toBeNull()
    draft = well
    // Other work too: nothing stands under the key.
    expect(await ask('k', { answer: '5' })).toMatchObject({
      state: 'done',
      record: { token: 'ann', verdict: { reward: 1 } },
    })
  })

  it('that nobody can score keeps its null, and is not tried again', async () => {
    draft = () => Promise.reject(new Error('the verifier is wrong'))
    const found = await ask('k')
    expect(found).toMatchObject({ state: 'done', record: { verdict: { status: 'unscorable', reward: null } } })
    expect(await ask('k')).toEqual(found)
    expect(asked).toBe(1)
  })

  it('is one verification under its key, while it goes on and behind it', async () => {
    const gate = Promise.withResolvers<VerdictDraft>()
    draft = () => gate.promise
    expect(await ask('k', { waitMs: 0 })).toEqual({ state: 'pending', key: 'k' })
    expect(await look('k')).toEqual({ state: 'pending', key: 'k' })
    await expect(ask('k', { answer: '5' })).rejects.toMatchObject({ code: 'VERIFY_KEY_TAKEN' })
    const again = ask('k')
    gate.resolve(scored(0.5, facts))
    expect(await again).toMatchObject({ state: 'done', record: { verdict: { reward: 0.5 } } })
    expect(await look('k')).toEqual(await again)
    await expect(ask('k', { answer: '5' })).rejects.toMatchObject({ code: 'VERIFY_KEY_TAKEN' })
    expect(asked).toBe(1)
  })

  it('is refused where an environment takes none, and where too much waits', async () => {
    await expect(ask('k', { of: other })).rejects.toMatchObject({ code: 'TASK_UNSUPPORTED' })
    const gate = Promise.withResolvers<VerdictDraft>()
    draft = () => gate.promise
    for (let n = 0; n < 256; n += 1) await ask(`k${n}`, { waitMs: 0 })
    // As many at once as there are places.
    await expect.poll(() => asked).toBe(2)
    await expect(ask('one more', { waitMs: 0 })).rejects.toMatchObject({ code: 'VERIFY_FULL', status: 429 })
    expect(await ask('k7', { waitMs: 0 })).toMatchObject({ state: 'pending' })
    gate.resolve(scored(1, facts))
    expect(await ask('k255')).toMatchObject({ state: 'done' })
    expect(await ask('one more')).toMatchObject({ state: 'done' })
  })

  it('that is under way when Paddock stops has no verdict, and may be asked for again', async () => {
    const gate = Promise.withResolvers<VerdictDraft>()
    draft = () => gate.promise
    const waiting = ask('k')
    const refused = expect(waiting).rejects.toMatchObject({ code: 'OWNER_STOPPING' })
    await expect.poll(() => asked).toBe(1)
    await verifications.close()
    await jobs.close()
    await refused
    expect(await store.catalogue.verification('k')).toBeNull()
    await expect(ask('k2')).rejects.toMatchObject({ code: 'OWNER_STOPPING' })
    verifications = made()
    draft = () => Promise.resolve(scored(1, facts))
    expect(await ask('k')).toMatchObject({ state: 'done' })
    expect(failures).toEqual([])
  })
})
