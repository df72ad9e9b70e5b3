import { setImmediate as nextTurnOfLoop } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Engine } from '../src/engine.ts'
import { CallFaults } from '../src/faults/fault-switch.ts'
import { Generation } from '../src/generation/generation.ts'
import { readOptions } from '../src/options.ts'

const TERMINATOR = '<|im_end|>'

async function generation(engine: Engine, n = 1): Promise<Generation> {
  const { vocabulary } = engine.profile
  const ids = await vocabulary.encode(`one two three${TERMINATOR}`)
  return new Generation(engine, {
    requestId: 'r',
    names: new Set(['r']),
    route: '/test',
    adapter: null,
    stream: true,
    promptIds: Int32Array.of(1, 2, 3),
    images: [],
    params: {
      n,
      temperature: 1,
      topP: 1,
      topK: 0,
      minP: 0,
      seed: 1,
      stop: [],
      stopTokenIds: [],
      includeStop: false,
      skipSpecial: true,
      topLogprobs: 0,
    },
    maxTokens: 100,
    answer: { candidates: [{ ids, logit: () => 0, name: 'only' }], depth: 0, script: undefined },
    faults: new CallFaults([]),
    cacheSalt: null,
    headers: {},
  })
}

function quietEngine(): Engine {
  const options = readOptions([])
  if (options === 'help') throw new Error('no help in tests')
  return new Engine(options)
}

const kinds = (engine: Engine): string[] => engine.journal.lines().map((line) => line.kind)

/** Whether a promise is still open after the event loop had every chance to settle it. */
async function pending(promise: Promise<unknown>): Promise<boolean> {
  let open = true
  void promise.then(() => (open = false))
  for (let turn = 0; turn < 50; turn++) await nextTurnOfLoop()
  return open
}

describe('a generation', () => {
  it('is in the journal before its last step is handed out, and not sooner', async () => {
    const engine = quietEngine()
    const running = await generation(engine, 2)
    expect(kinds(engine)).toEqual(['intent'])
    const seen: string[][] = []
    for await (const _step of running.steps()) seen.push(kinds(engine))
    expect(seen.at(-1)).toEqual(['intent', 'generation'])
    expect(seen.at(-2)).toEqual(['intent'])
    expect(kinds(engine)).toEqual(['intent', 'generation'])
  })

  it('waits where it stands while everything is paused, and goes on from there', async () => {
    const engine = quietEngine()
    const steps = (await generation(engine)).steps()
    const first = await steps.next()
    engine.gate.pause('all')
    const next = steps.next()
    expect(await pending(next)).toBe(true)
    engine.updateWeightVersion('later')
    engine.gate.resume()
    expect((await next).done).toBe(false)
    for await (const _step of steps) continue
    const line = engine.journal.lines().at(-1)
    expect(line).toMatchObject({ kind: 'generation', weightVersionBefore: '0', weightVersionAfter: 'later' })
    expect(
      line?.kind === 'generation' && line.choices[0]?.weightVersions.map((span) => [span.version, span.start]),
    ).toEqual([
      ['0', 0],
      ['later', 1],
    ])
    expect(first.done).toBe(false)
  })

  it('goes on when only new ones are paused; new ones wait', async () => {
    const engine = quietEngine()
    const steps = (await generation(engine)).steps()
    await steps.next()
    engine.gate.pause('new')
    expect((await steps.next()).done).toBe(false)
    const held = (await generation(engine)).steps().next()
    expect(await pending(held)).toBe(true)
    engine.gate.resume()
    expect((await held).done).toBe(false)
  })

  it('is recorded as aborted when its reader leaves', async () => {
    const engine = quietEngine()
    for await (const _step of (await generation(engine)).steps()) break
    const line = engine.journal.lines().at(-1)
    expect(line).toMatchObject({
      kind: 'generation',
      choices: [{ finishReason: 'abort', tokenIds: [expect.any(Number)] }],
    })
    expect(engine.flights.size).toBe(0)
  })
})
