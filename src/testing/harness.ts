import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isPaddockError, newId } from '../core/index.ts'
import { createProxy, type Listener, openaiEngine, type Proxy } from '../proxy/index.ts'
import {
  bareTask,
  type BoxHarness,
  type Harness,
  type HarnessExit,
  type HostHarness,
  type LaunchContext,
} from '../rollout/index.ts'
import { openStore, type Store } from '../trajectory/index.ts'
import { openaiPlain, serveFixture } from './engine/index.ts'

/** Facts about the program that a harness starts. */
export interface HarnessContractOptions {
  /** Exits of a program in a box, as its tested version leaves, and how each is to be read. */
  readonly exits?: readonly (Partial<HarnessExit> & { readonly end: string })[]
}

/**
 * Declares the suite for one harness inside a vitest file. A program in a box is not started: its launch and the reading of its exits
 * are checked. A harness on the host is run against a recorder and an engine that answers `Hello.`; neither needs Docker.
 *
 * @example
 * harnessContract(myAgent, { exits: [{ exitCode: 0, end: 'completed' }, { exitCode: 53, end: 'horizon' }] })
 */
export function harnessContract(harness: Harness, options: HarnessContractOptions = {}): void {
  describe(`harnessContract: ${harness.name}`, () => {
    if (harness.place === 'box') boxContract(harness, options)
    else hostContract(harness)
  })
}

function boxContract(harness: BoxHarness, { exits = [] }: HarnessContractOptions): void {
  const launch = (port: number, words = 'Say hello.', mcp: LaunchContext['mcp'] = null) =>
    harness.configure({
      task: bareTask({ name: 'contract', instruction: words }),
      prompt: words,
      systemPrompt: null,
      origin: `http://127.0.0.1:${port}`,
      apiKey: 'placeholder',
      model: 'model-of-the-contract',
      mcp,
      bundlePath: harness.bundle === null ? null : '/opt/bundle',
      home: '/home/agent',
      workdir: '/workspace',
    })
  const exit: HarnessExit = { exitCode: 0, signal: null, oom: false, stdout: '', stderr: '' }

  it('is configured the same way twice', () => {
    expect(launch(4001)).toEqual(launch(4001))
  })

  it('asks the origin that it is given, says the prompt, and keeps its files below its home', () => {
    const text = JSON.stringify(launch(4001, 'a prompt of the contract'))
    expect(text).toContain('127.0.0.1:4001')
    expect(text).toContain('a prompt of the contract')
    expect(JSON.stringify(launch(4002))).not.toContain('127.0.0.1:4001')
    for (const { path } of launch(4001).files) expect(path).not.toMatch(/^\/|(^|\/)\.\.(\/|$)/)
  })

  it('takes the tools of an MCP server, or refuses them by name', () => {
    const url = 'http://127.0.0.1:4003/tools-of-the-contract'
    try {
      expect(JSON.stringify(launch(4001, 'Say hello.', { name: 'tools', url }))).toContain('tools-of-the-contract')
    } catch (error) {
      if (!isPaddockError(error)) throw error
      expect(error.code).toBe('HARNESS_INVALID')
    }
  })

  it('never reads a kill, a lack of memory or exit 1 as completed', () => {
    const failed: Partial<HarnessExit>[] = [
      { exitCode: null, signal: 'SIGKILL' },
      { exitCode: null, signal: 'SIGKILL', oom: true },
      { exitCode: 1, stderr: 'TypeError: x\n' },
    ]
    for (const facts of failed) expect(harness.parseResult({ ...exit, ...facts }).end).not.toBe('completed')
  })

  it('reads any output without throwing', () => {
    const text = fc.oneof(fc.string(), fc.json(), fc.constant('[{"type":"sys'))
    fc.assert(
      fc.property(text, text, fc.nat(255), (stdout, stderr, exitCode) => {
        const { end, detail } = harness.parseResult({ ...exit, exitCode, stdout, stderr })
        expect(['completed', 'horizon', 'context_overflow', 'harness_crash']).toContain(end)
        expect(typeof detail).toBe('string')
      }),
    )
  })

  it.skipIf(exits.length === 0).each(exits)('reads $end', ({ end, ...facts }) => {
    expect(harness.parseResult({ ...exit, ...facts }).end).toBe(end)
  })
}

function hostContract(harness: HostHarness): void {
  let directory: string
  let engine: Awaited<ReturnType<typeof serveFixture>>
  let store: Store
  let proxy: Proxy
  let listener: Listener
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paddock-harness-'))
    engine = await serveFixture(openaiPlain)
    store = await openStore(directory)
    proxy = createProxy({ recorder: store.recorder, engine: openaiEngine({ url: engine.url }) })
    listener = await proxy.listen({})
  })
  afterAll(async () => {
    await proxy?.close()
    await store?.close()
    await engine?.[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  const begin = async (signal: AbortSignal, asks: (baseUrl: string) => string = (baseUrl) => baseUrl) => {
    const { session, key, baseUrl } = await proxy.openSession({ policy: { strategy: 'record' } })
    const words = 'Say hello.'
    const report = harness.run({
      task: bareTask({ name: 'contract', instruction: words }),
      attempt: { id: newId() },
      prompt: words,
      systemPrompt: null,
      baseUrl: asks(baseUrl(listener.origin)),
      apiKey: key,
      model: openaiPlain.model,
      box: null,
      tools: [],
      goesOn: null,
      hear: null,
      signal,
      emit: () => {},
      keep: () => Promise.reject(new Error('no tool gave a picture')),
      onOutput: () => {},
    })
    return { report, log: () => store.recorder.session(session.id) }
  }

  it('asks the model by the base URL in the dialect that it declares, and reports its last words', async () => {
    const { report, log } = await begin(new AbortController().signal)
    expect(await report).toMatchObject({ end: 'completed', answer: expect.stringContaining('Hello.') })
    const { calls } = await log()
    expect(calls.length).toBeGreaterThan(0)
    expect(new Set(calls.map(({ intent }) => intent.dialect))).toEqual(new Set([harness.dialect]))
  })

  it('never reports completed where no model answered', async () => {
    const { report } = await begin(new AbortController().signal, (url) => url.replace(/:\d+\//, ':1/'))
    const end = await report.then(
      (told) => told.end,
      () => 'rejected',
    )
    expect(end).not.toBe('completed')
  })

  it('rejects with the reason of an abort', async () => {
    const reason = new Error('the run was cancelled')
    const { report } = await begin(AbortSignal.abort(reason))
    await expect(report).rejects.toBe(reason)
  })
}
