import { mkdirSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../../../test/fixtures/temp-dir.ts'
import { isPaddockError } from '../../../../core/index.ts'
import { dockerProvider, type SandboxProvider } from '../../../../sandbox/index.ts'
import { requireDocker } from '../../../../testing/sandbox/index.ts'
import { attempt } from '../../../attempt.ts'
import { toArtifact } from '../../record.ts'
import { cleanAnswer, seenArtifact, urlScore } from './verify.ts'
import { cartSet, cartTask, row, shoppingState, shopServer, whole } from './webarena.fixture.ts'
import { builtInGui } from '../../../../builtin/index.ts'

const signal = new AbortController().signal
const gui = builtInGui({ trustTasks: true })
const directory = tempDir()
const write = (name: string, content: unknown) => {
  const path = join(directory, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, JSON.stringify(content))
  return path
}

let made = 0
const setOf = (tasks: unknown, more: object = {}) => {
  made += 1
  write(`${made}/tasks.json`, tasks)
  return write(`${made}/set.json`, {
    format: 'webarena',
    tasks: 'tasks.json',
    sites: { SHOPPING: 'http://127.0.0.1:1/' },
    ...more,
  })
}
const wrong = async (path: string) => {
  const error: unknown = await gui.load(path).catch((reason: unknown) => reason)
  return isPaddockError(error) ? error.line() : error
}

describe('task files of WebArena', () => {
  it('are read with the addresses of the user', async () => {
    const [task] = await gui.load(setOf([whole]))
    expect(task).toMatchObject({ name: 'webarena-7', instruction: whole.intent })
    expect(task?.data).toMatchObject({
      start: ['http://127.0.0.1:1'],
      origins: ['http://127.0.0.1:1'],
      urls: ['http://127.0.0.1:1/cart'],
    })
    const bare = {
      ...whole,
      start_url: 'http://a.test/x',
      eval: { ...whole.eval, eval_types: ['string_match'], reference_url: null, program_html: [] },
    }
    expect(await gui.load(write('bare.json', bare))).toHaveLength(1)
  })

  it('are refused with the row and the fix', async () => {
    const html = (target: object) =>
      row(1, {
        eval_types: ['program_html'],
        program_html: [{ url: 'last', locator: '', required_contents: { must_include: ['a'] }, ...target }],
      })
    expect(await wrong(setOf([whole, row(8, { eval_types: ['url_match'] }, { start_url: '__GITLAB__/x' })]))).toMatch(
      /tasks\.json: row 1: __GITLAB__: .*"sites": \{"GITLAB"/,
    )
    expect(await wrong(setOf(html({ url: 'func:shopping_get_latest_order_url()' })))).toMatch(
      /TASK_UNSUPPORTED.*Python of WebArena's own \(func:shopping_get_latest_order_url\(\)\) \(1 of 1.*leave-out/,
    )
    expect(await wrong(setOf(html({ locator: 'window.x' })))).toMatch(/unknown locator window\.x/)
    expect(
      await wrong(setOf(row(1, { eval_types: ['string_match'], reference_answers: { fuzzy_match: ['a'] } }))),
    ).toMatch(/"judge"/)
    expect(await wrong(setOf(row(1, { eval_types: ['string_match'], reference_answers: ['a'] })))).toMatch(
      /reference_answers/,
    )
    expect(await wrong(setOf(row(1, { eval_types: ['video'] })))).toMatch(/eval\.eval_types\.0/)
    expect(await wrong(setOf({ ...whole, storage_state: './.auth/shopping_state.json' }))).toMatch(
      /logged-in state.*"auth"/,
    )
  })
})

describe('a set of WebArena that leaves out', () => {
  it('keeps the others, whatever a row says: unknown evaluations, sites and places, pictures, missing members', async () => {
    const rows = [
      whole,
      row(2, { eval_types: ['page_image_query'] }),
      row(3, { eval_types: ['url_match'] }, { start_url: '__CLASSIFIEDS__/x' }),
      row(4, { eval_types: ['string_match'], reference_answers: { must_exclude: ['a'] } }),
      { ...whole, task_id: 5, image: 'https://a.test/lamp.png' },
      { ...whole, task_id: 6, image: ['a.png', 'b.png'] },
      { task_id: 8, intent: 'Look.', start_url: 'http://a.test' },
    ]
    expect(await wrong(setOf(rows))).toMatch(/row 1: eval\.eval_types.*6 of 7.*leave-out/)
    expect((await gui.load(setOf(rows, { unsupported: 'leave-out' }))).map(({ name }) => name)).toEqual(['webarena-7'])
    expect(await wrong(setOf({ ...whole, image: 'lamp.png' }))).toMatch(/TASK_UNSUPPORTED.*the picture lamp\.png/)
  })
})

describe('a verdict on a task of WebArena', () => {
  const verdict = async (evaluation: object, answer: string | null, more: object = {}) => {
    const [task] = await gui.load(setOf(row(1, evaluation), more))
    if (task === undefined) throw new Error('no task')
    const record = { ended: 'answered' as const, answer, actions: 1, forged: 0, state: null }
    const artifacts = { items: [toArtifact(record), seenArtifact({ url: 'http://a.test/', contents: [] })] }
    const openBox = () => Promise.reject(new Error('no box is needed'))
    return (await gui.verify({ task, artifacts, openBox, signal, emit: () => undefined })).reward
  }
  const answers = (reference_answers: object) => ({
    eval_types: ['string_match'],
    reference_answers,
    string_note: 'no such page',
  })

  it('is by the answer as there, with a judge for likeness', async () => {
    expect(cleanAnswer(` "It's" `)).toBe("it's")
    expect(await verdict(answers({ exact_match: '$5' }), '"$5"')).toBe(1)
    expect(await verdict(answers({ must_include: ['5'] }), '15 of them')).toBe(0)
    expect(await verdict(answers({ must_include: ['5'] }), 'it is 5.')).toBe(1)
    for (const whole of ['3/5/2023', '0.5', '5.9', '5-6', '12:5', 'x=5', '+5', '5th', 'item 5. oak street']) {
      expect([whole, await verdict(answers({ must_include: ['5'] }), whole)]).toEqual([whole, 0])
    }
    for (const cut of ['$5', '5%', '(5)', '5, then 6', '5--6', '"5"', "5's", 'rated 5! good', 'it costs $5. thanks']) {
      expect([cut, await verdict(answers({ must_include: ['5'] }), cut)]).toEqual([cut, 1])
    }
    // Beside another reference, a part of a word is enough.
    expect(await verdict(answers({ must_include: ['5', 'oak'] }), 'oak 0.5')).toBe(1)
    expect(await verdict(answers({ must_include: ['Ada', 'Bo'] }), 'bo and ada')).toBe(1)
    expect(await verdict(answers({ must_include: ['Ada', 'Bo'] }), null)).toBe(0)
    const program = `let t='';process.stdin.on('data',(d)=>t+=d).on('end',()=>{const r=JSON.parse(t);
      console.log(JSON.stringify({score:r.result==='nice'&&r.expected.reference==='pleasant'||r.func==='ua_match'&&r.expected.reference==='no such page'?1:0}))})`
    const judge = { judge: { command: ['node', '-e', program] } }
    expect(await verdict(answers({ fuzzy_match: ['pleasant'] }), 'nice', judge)).toBe(1)
    expect(await verdict(answers({ fuzzy_match: ['pleasant'] }), '', judge)).toBe(0)
    expect(await verdict(answers({ fuzzy_match: 'N/A' }), 'n/a', judge)).toBe(1)
    expect(await verdict(answers({ fuzzy_match: 'N/A' }), 'the page is missing', judge)).toBe(1)
    expect(await verdict(answers({ fuzzy_match: ['pleasant'] }), 'nice', { judge: { command: ['false'] } })).toBeNull()
  })

  it('is by the address as there', () => {
    expect(urlScore('http://a.test/x/y?b=1&c=2', ['http://a.test/x/y/'])).toBe(1)
    expect(urlScore('http://a.test/x?b=1', ['http://a.test/x?b=2', 'http://a.test/x?b=1'])).toBe(1)
    expect(urlScore('http://a.test/x', ['http://a.test/x?b=1'])).toBe(0)
    expect(urlScore('http://a.test/', ['http://b.test'])).toBe(0)
  })
})

describe.runIf(await requireDocker())('a task of WebArena on a site of the user', () => {
  let sandbox: SandboxProvider
  let shop: Server
  let origin = ''
  beforeAll(async () => {
    sandbox = dockerProvider()
    shop = shopServer()
    const listening = Promise.withResolvers<void>()
    shop.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    const address = shop.address()
    origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  })
  afterAll(async () => {
    await sandbox.close()
    shop.close()
    shop.closeAllConnections()
  })

  it('starts logged in, keeps its cookies, and is scored by answer, address and pages', async () => {
    const path = setOf(cartTask, { ...cartSet, sites: { SHOPPING: origin } })
    write(`${made}/auth/shopping_state.json`, shoppingState)
    const [task] = await gui.load(path)
    if (task === undefined) throw new Error('no task')
    const { script } = await gui.scripts.oracle(task)
    const won = await attempt({
      environment: gui,
      task,
      script: { name: 'oracle', weight: 1, script },
      sandbox,
      signal,
    })
    expect(won).toMatchObject({
      status: 'scored',
      reward: 1,
      components: { string_match: 1, url_match: 1, program_html: 1 },
    })
  })
})
