/** Applications and importers of others, from outside of this repository's sources: how they are loaded, refused and worked on. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { tempDir } from '../../../test/fixtures/temp-dir.ts'
import { builtInGui, environmentRegistry } from '../../builtin/index.ts'
import { isPaddockError, PaddockError, type Task } from '../../core/index.ts'
import { dockerProvider } from '../../sandbox/index.ts'
import { requireDocker } from '../../testing/sandbox/index.ts'
import { attempt } from '../attempt.ts'
import type { Environment, ScriptStep } from '../contract.ts'
import { defineTool } from '../tool.ts'
import { type App, type AppSpec, defineApp, html, page, steps } from './application/index.ts'
import { defineImporter, type ImporterSpec, shownShape } from './importer/index.ts'

const examples = join(import.meta.dirname, '../../../examples/plugins')
const signal = new AbortController().signal

interface Lamp {
  lit: boolean
}
const spec: AppSpec<Lamp> = {
  name: 'lamp',
  apiVersion: 1,
  start: () => ({ lit: false }),
  page: () => page({ title: 'Lamp', body: html`<h1>Lamp</h1>` }),
  act: () => '/',
  tools: (state) => [
    defineTool({
      name: 'switch_lamp',
      description: 'Lights the lamp.',
      input: z.object({}),
      run: async () => {
        state.lit = true
        return { status: 'ok', text: 'It is lit.' }
      },
    }),
  ],
  goals: {
    light: () => ({
      instruction: 'Light the lamp.',
      change: (state) => {
        state.lit = true
      },
      oracle: [{ tool: 'switch_lamp', args: {} }, steps.done()],
      near: [steps.done()],
    }),
  },
}
const shape = shownShape.extend({ format: z.literal('mine') })
const importer: ImporterSpec<z.infer<typeof shape>> = {
  name: 'mine',
  apiVersion: 1,
  verifierVersion: '1',
  task: shape,
  read: async () => null,
  attempt: async () => {
    throw new RangeError('nobody opens it')
  },
  verify: async () => {
    throw new RangeError('nobody asks')
  },
  scripts: { oracle: async () => ({ name: 'x', weight: 1, script: { steps: [] } }), cheats: async () => [] },
}

let directory = ''
beforeAll(async () => {
  directory = tempDir()
})

async function lineOf(failing: () => unknown): Promise<string> {
  try {
    await failing()
  } catch (error) {
    return isPaddockError(error) ? error.line() : String(error)
  }
  return 'nothing was thrown'
}

describe('an app', () => {
  it.each<readonly [Record<string, unknown>, RegExp]>([
    [{ name: 'Lamp 2' }, /ENVIRONMENT_INVALID.*Gui app Lamp 2: name must be lower case/],
    [{ apiVersion: 2 }, /apiVersion must be 1/],
    [{ page: undefined }, /page must be a function/],
    [{ goals: {} }, /goals must have a goal/],
    [{ beside: 'office' }, /beside must be one of files, terminal/],
    [{ tools: [] }, /tools must be a function/],
  ])('with %j is refused by the part that is wrong', async (wrong, words) => {
    expect(await lineOf(() => defineApp(Object.assign({}, spec, wrong)))).toMatch(words)
  })

  it('whose goal asks for nothing says so when its tasks are loaded', async () => {
    const idle = defineApp({ ...spec, goals: { idle: () => ({ ...plan, change: () => undefined }) } })
    const file = join(directory, 'idle.json')
    await writeFile(file, JSON.stringify({ app: 'lamp', goals: ['idle'], seeds: [3] }))
    const environment = builtInGui({ trustTasks: false, apps: [idle] })
    expect(await lineOf(() => environment.load(file))).toMatch(/goal idle asks for nothing on seed 3/)
  })

  it.each<readonly [string, readonly App[], RegExp]>([
    ['a name that Paddock has', [defineApp({ ...spec, name: 'shop' })], /two gui apps named shop/],
    ['a name twice', [defineApp(spec), defineApp(spec)], /two gui apps named lamp/],
    ['a tool of every gui task', [defineApp({ ...spec, tools: () => [toolNamed('computer')] })], /computer is taken/],
    ['a tool twice', [defineApp({ ...spec, tools: () => [toolNamed('a'), toolNamed('a')] })], /tool name a is taken/],
  ])('with %s is refused', async (_what, apps, words) => {
    expect(await lineOf(() => builtInGui({ trustTasks: false, apps }))).toMatch(words)
  })
})

const plan = { instruction: 'x', oracle: [], near: [] }
const toolNamed = (name: string) =>
  defineTool({ name, description: '', input: z.object({}), run: async () => ({ status: 'ok', text: '' }) })

describe('an importer', () => {
  it.each<readonly [Record<string, unknown>, RegExp]>([
    [{ name: 'My Format' }, /ENVIRONMENT_INVALID.*Gui importer My Format: name must be lower case/],
    [{ read: null }, /importer mine: read must be a function/],
    [{ attempt: null }, /attempt must be a function/],
    [{ hostProgram: 'rm' }, /hostProgram must be a function/],
    [{ verify: null }, /verify must be a function/],
  ])('with %j is refused by the part that is wrong', async (wrong, words) => {
    expect(await lineOf(() => defineImporter(Object.assign({}, importer, wrong)))).toMatch(words)
  })

  it('may not take a name that Paddock has, nor give tasks of another format', async () => {
    const webarena = defineImporter({ ...importer, name: 'webarena' })
    expect(await lineOf(() => builtInGui({ trustTasks: false, importers: [webarena] }))).toMatch(
      /two gui importers named webarena/,
    )
    const file = join(directory, 'mine.json')
    await writeFile(file, '{"format":"mine"}')
    const gives = defineImporter({ ...importer, read: async () => loaded('coldest') })
    const environment = builtInGui({ trustTasks: false, importers: [gives] })
    expect(await lineOf(() => environment.load(file))).toMatch(
      /must give tasks .* with format mine; thermostat-coldest-1/,
    )
  })

  it('that nobody lists any more is named where its tasks are used', async () => {
    const [heron] = await loaded('heron')
    if (heron === undefined) throw new Error('no task')
    const line = await lineOf(() => builtInGui({ trustTasks: false }).tools(heron))
    expect(line).toMatch(/TASK_INVALID.*heron: there is no format "quiz".*gui\.importers/)
  })
})

describe('a module', () => {
  it('that cannot be loaded or gives none is refused, with the fix', async () => {
    await writeFile(join(directory, 'empty.mjs'), 'export const nothing = 1\n')
    const apps = (source: string | object) => lineOf(() => environmentRegistry({ gui: { apps: [source] }, directory }))
    expect(await apps('./absent.mjs')).toMatch(/ENVIRONMENT_INVALID.*app plugin \.\/absent\.mjs.*Check the path/)
    expect(await apps('./empty.mjs')).toMatch(/\.\/empty\.mjs gives no gui app of API version 1.*gui\.defineApp/)
    expect(await apps({})).toMatch(/the object under gui\.apps gives no gui app/)
    const importers = await lineOf(() => environmentRegistry({ gui: { importers: ['./empty.mjs'] }, directory }))
    expect(importers).toMatch(/gives no gui importer of API version 1.*gui\.defineImporter/)
  })

  it('may make its app with the kit that it is called with, so that it imports nothing', async () => {
    await writeFile(
      join(directory, 'made.mjs'),
      `export default ({ gui: { defineApp, page } }) => defineApp({ name: 'made', apiVersion: 1, start: () => ({}),
        page: () => page({ title: 'Made', body: 'x' }), act: () => '/',
        goals: { look: () => ({ instruction: 'Look.', answer: 'x', oracle: [], near: [] }) } })\n`,
    )
    await writeFile(join(directory, 'made.json'), JSON.stringify({ app: 'made', goals: ['look'], seeds: [1] }))
    const registry = await environmentRegistry({ gui: { apps: ['./made.mjs'] }, directory })
    expect(await registry.get('gui').load(join(directory, 'made.json'))).toMatchObject([{ name: 'made-look-1' }])
  })
})

let cached: Environment | null = null
async function ofExamples(): Promise<Environment> {
  const gui = { apps: ['./gui-app.ts'], importers: ['./gui-importer.ts'] }
  cached ??= (await environmentRegistry({ gui, directory: examples })).get('gui')
  return cached
}

async function loaded(part: string): Promise<readonly Task[]> {
  const tasks = await (await ofExamples()).load(join(examples, 'gui-tasks'))
  return tasks.filter(({ name }) => name.includes(part))
}

describe.runIf(await requireDocker())('the example', () => {
  const sandbox = dockerProvider()
  afterAll(() => sandbox[Symbol.asyncDispose]())
  const reward = async (environment: Environment, task: Task | undefined, list: readonly ScriptStep[]) => {
    if (task === undefined) throw new PaddockError('TASK_INVALID', 'no task')
    const script = { name: 'x', weight: 1, script: { steps: list } }
    return (await attempt({ environment, task, script, sandbox, signal })).reward
  }

  it('app is worked on with a tool of its own, whose changes count as those of its pages', async () => {
    const [coldest] = await loaded('coldest')
    const environment = await ofExamples()
    if (coldest === undefined) throw new Error('no task')
    expect(environment.tools(coldest).map(({ name }) => name)).toContain('read_sensor')
    const { script } = await environment.scripts.oracle(coldest)
    expect(await reward(environment, coldest, script.steps)).toBe(1)

    const file = join(directory, 'lamp.json')
    await writeFile(file, JSON.stringify({ app: 'lamp', goals: ['light'], seeds: [1] }))
    const lamps = builtInGui({ trustTasks: false, apps: [defineApp(spec)] })
    const [light] = await lamps.load(file)
    const use: ScriptStep = { tool: 'switch_lamp', args: {} }
    expect(await reward(lamps, light, [use, steps.done()])).toBe(1)
  })

  it('importer gives tasks that are set up, worked on and scored', async () => {
    const [heron] = await loaded('heron')
    const environment = await ofExamples()
    const walk = [steps.look(), steps.click('link "Heron"'), steps.answer('2')]
    expect(await reward(environment, heron, walk)).toBe(1)
  })
})
