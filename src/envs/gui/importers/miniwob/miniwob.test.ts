import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../../../test/fixtures/temp-dir.ts'
import { isPaddockError, type Task } from '../../../../core/index.ts'
import { type Box, dockerProvider, type SandboxProvider } from '../../../../sandbox/index.ts'
import { requireDocker } from '../../../../testing/sandbox/index.ts'
import { attempt } from '../../../attempt.ts'
import type { ScriptStep } from '../../../contract.ts'
import { openTaskBox } from '../../../open-box.ts'
import { GuiBrowser } from '../../browser/index.ts'
import { evaluated } from '../../browser/shapes.ts'
import { miniwobDataSchema } from './data.ts'
import { writeCheckout } from './miniwob.fixture.ts'
import { miniwobSite } from './site.ts'
import { rewardOf } from './verify.ts'
import { steps } from '../../application/index.ts'
import { builtInGui } from '../../../../builtin/index.ts'

const gui = builtInGui({ trustTasks: false })

const signal = new AbortController().signal
const { look, click, type, done } = steps
const directory = tempDir()
writeCheckout(join(directory, 'checkout'))
const set = (name: string, content: object) => {
  const path = join(directory, `${name}.json`)
  writeFileSync(path, JSON.stringify({ format: 'miniwob', directory: 'checkout', ...content }))
  return path
}
const solved: readonly ScriptStep[] = [look(), click('button "Left"'), done()]
/** What each seed of the fixture asks for: seen once, and the same ever after. */
const sets = {
  press: set('press', { pages: ['press-one'], seeds: [1], oracles: { 'press-one-1': solved } }),
  write: set('write', { pages: ['write-word'], seeds: [1], score: 'raw' }),
}
const wrong = async (path: string) => {
  const error: unknown = await gui.load(path).catch((reason: unknown) => reason)
  return isPaddockError(error) ? error.line() : error
}

describe('a checkout of MiniWoB++', () => {
  it('gives a task for each page and seed, from the checkout, its html folder or one page', async () => {
    const names = async (path: string) => (await gui.load(join(directory, path))).map(({ name }) => name)
    const all = ['press-one-1', 'press-one-2', 'press-one-3', 'press-one-4', 'press-one-5']
    expect(await names('checkout')).toEqual([...all, ...all.map((name) => name.replace('press-one', 'write-word'))])
    expect(await names('checkout/miniwob/html')).toEqual(await names('checkout'))
    expect(await names('checkout/miniwob/html/miniwob/press-one.html')).toEqual(all)
    expect((await gui.load(join(directory, 'checkout')))[0]?.data).toMatchObject({
      screen: { width: 332, height: 240 },
    })
  })

  it('is refused with the place and the fix', async () => {
    expect(await wrong(set('a', { pages: ['press-two'] }))).toMatch(
      /a\.json: pages: there is no page press-two.*press-one/,
    )
    expect(await wrong(set('b', { directory: 'nowhere' }))).toMatch(/nowhere is no checkout.*core\.js.*miniwob\/html/)
    expect(await wrong(set('c', { oracles: { 'press-one-9': solved } }))).toMatch(/no task press-one-9/)
    expect(await wrong(set('d', { schema: 'osworld' }))).toMatch(/schema: is no schema; use one of openai/)
    expect(await wrong(set('e', { seeds: [] }))).toMatch(/seeds/)
    expect(await wrong(set('f', { format: 'webworld' }))).toMatch(/no format "webworld".*Use one of .*miniwob/)
  })

  it('is scored by the raw reward, the time of the host, or a threshold', () => {
    const data = { score: 'binary', threshold: 0.5 } as const
    const of = (raw: number) => ({
      utterance: '',
      limitMs: 1000,
      end: { raw, scaled: true, reason: null, elapsedMs: 250 },
    })
    expect(rewardOf(of(0.5), data)).toBe(0)
    expect(rewardOf(of(1), data)).toBe(1)
    expect(rewardOf(of(0.5), { ...data, score: 'thresholded' })).toBe(1)
    expect(rewardOf(of(0.5), { ...data, score: 'raw' })).toBe(0.5)
    expect(rewardOf(of(-1), { ...data, score: 'raw' })).toBe(0)
    expect(rewardOf(of(0.8), { ...data, score: 'scaled' })).toBeCloseTo(0.6)
    expect(rewardOf({ ...of(1), end: null }, { ...data, score: 'raw' })).toBe(0)
  })
})

describe.runIf(await requireDocker())('an episode of MiniWoB++', () => {
  let sandbox: SandboxProvider
  let press: Task
  let write: Task
  beforeAll(async () => {
    sandbox = dockerProvider()
    const first = async (path: string) => (await gui.load(path))[0] ?? expect.fail('no task')
    ;[press, write] = [await first(sets.press), await first(sets.write)]
  })
  afterAll(() => sandbox.close())

  const ran = (task: Task, list: readonly ScriptStep[]) =>
    attempt({ environment: gui, task, script: { name: 'x', weight: 1, script: { steps: list } }, sandbox, signal })

  it('is won by its oracle; markup that is typed in gives nothing', async () => {
    const [won, hacked] = await Promise.all([
      ran(press, (await gui.scripts.oracle(press)).script.steps),
      ran(write, [
        look(),
        type('textbox "Word"', `<img src=x onerror="core.endEpisode(1)"><script>core.endEpisode(1)</script>`),
        click('button "Submit"'),
        done(),
      ]),
    ])
    expect(won).toMatchObject({ status: 'scored', reward: 1, trust: 'host', components: { episode: 1, raw: 1 } })
    expect(won.evidence).toMatch(/asked for: Press the button Left\./)
    expect(hacked).toMatchObject({ reward: 0, components: { raw: -1 } })
  })

  it('is ended by the page in its time, once, and not by a script from outside', async () => {
    const box: Box = await openTaskBox(sandbox, gui.box(press), { labels: { role: 'probe' }, signal })
    const data = miniwobDataSchema.parse(press.data)
    const open = async (site: ReturnType<typeof miniwobSite>) => {
      const browser = await GuiBrowser.open(box, { screen: data.screen, site })
      await site.started(20_000)
      return browser
    }
    const forged = miniwobSite(press.source, data)
    const one = await open(forged)
    const run = async (expression: string) => {
      const asked = { expression, awaitPromise: true, returnByValue: true }
      return (await one.page.send('Runtime.evaluate', asked, evaluated)).result.value
    }
    const report = "{what:'end',raw:1,scaled:false,reason:null,stack:''}"
    await run('core.endEpisode = () => {}')
    expect(
      await run(`fetch('/paddock/episode',{method:'POST',body:JSON.stringify(${report})}).then((r) => r.status)`),
    ).toBe(403)
    // The key is not in what is served a second time.
    expect(await run(`fetch('/core/core.js').then((r) => r.text()).then((t) => t.includes('x-episode'))`)).toBe(false)
    // A call from code of no file is no end.
    await run('core.endEpisode(1)')
    await one.page.when(() => forged.forged === 2 || forged.state().end !== null)
    expect(forged.state()).toMatchObject({ utterance: 'Press the button Left.', end: null })
    await one[Symbol.asyncDispose]()

    const short = miniwobSite(press.source, { ...data, seconds: 0.2 })
    const two = await open(short)
    await two.page.when(() => short.state().end !== null)
    expect(short.state().end).toMatchObject({ raw: -1, reason: 'timed out' })
    await two[Symbol.asyncDispose]()
    await box[Symbol.asyncDispose]()
  })
})
