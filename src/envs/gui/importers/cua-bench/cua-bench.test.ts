import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tempDir } from '../../../../../test/fixtures/temp-dir.ts'
import { isPaddockError, type Task } from '../../../../core/index.ts'
import { dockerProvider, type SandboxProvider } from '../../../../sandbox/index.ts'
import { requireDocker } from '../../../../testing/sandbox/index.ts'
import { attempt } from '../../../attempt.ts'
import type { ScriptStep } from '../../../contract.ts'
import { writeTasks } from './cua-bench.fixture.ts'
import { builtInGui } from '../../../../builtin/index.ts'

const untrusting = builtInGui({ trustTasks: false })

const signal = new AbortController().signal
const gui = builtInGui({ trustTasks: true })
const directory = tempDir()
const write = (name: string, content: string) => {
  const path = join(directory, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, content)
  return path
}

writeTasks(join(directory, 'tasks'))
const wrong = async (path: string) => {
  const error: unknown = await gui.load(path).catch((reason: unknown) => reason)
  return isPaddockError(error) ? error.line() : error
}

describe('a folder of cua-bench', () => {
  it('gives a task for each variant, from the folder of tasks, one task, or a set', async () => {
    const names = async (path: string) => (await gui.load(path)).map(({ name }) => name)
    const both = ['write-word-0', 'write-word-1']
    expect(await names(join(directory, 'tasks'))).toEqual(both)
    expect(await names(join(directory, 'tasks/write-word'))).toEqual(both)
    const set = { format: 'cua-bench', directory: 'tasks', tasks: ['write-word'] }
    expect(await names(write('set.json', JSON.stringify(set)))).toEqual(both)
    expect((await gui.load(join(directory, 'tasks')))[1]?.instruction).toBe('Write "otter" and press Send.')
  })

  it('runs nothing on the host unless tasks are trusted, neither when it is loaded nor later', async () => {
    const ran = join(directory, 'ran')
    const path = write('planted/a/main.py', `import cua_bench\nopen(${JSON.stringify(ran)}, 'w')`)
    for (const place of [join(directory, 'planted'), join(path, '..')]) {
      await expect(untrusting.load(place)).rejects.toMatchObject({ code: 'TASK_UNTRUSTED', data: { program: path } })
    }
    expect(existsSync(ran)).toBe(false)
    const [task] = await gui.load(join(directory, 'tasks'))
    if (task === undefined) throw new Error('no task')
    expect(() => untrusting.box(task)).toThrow(/TASK_UNTRUSTED|outside of any box/)
  })

  it('is refused with the place and the fix', async () => {
    write('broken/a/main.py', 'import cua_bench as cb\nraise RuntimeError("no disk")')
    expect(await wrong(join(directory, 'broken'))).toMatch(
      /TASK_INVALID.*main\.py: RuntimeError: no disk.*@tasks_config/,
    )
    write(
      'empty/a/main.py',
      'import cua_bench as cb\n@cb.tasks_config\ndef load():\n    return [cb.Task(description="x")]',
    )
    expect(await wrong(join(directory, 'empty'))).toMatch(/evaluate_task: there is none for the split train/)
    const set = { format: 'cua-bench', directory: 'tasks', tasks: ['read-word'] }
    expect(await wrong(write('other.json', JSON.stringify(set)))).toMatch(/no task read-word.*write-word/)
  })
})

describe('a folder of cua-bench with modules that cannot be run', () => {
  const module = (setup: string, more = '') => `import cua_bench as cb
@cb.tasks_config(split="train")
def load():
    return [cb.Task(description="x", computer={"provider": "native"})]
@cb.setup_task(split="train")
async def start(task_cfg, session: cb.DesktopSession):
    await ${setup}
@cb.evaluate_task(split="train")
async def evaluate(task_cfg, desktop: cb.DesktopSession):
    return [1.0]
${more}`
  const solver = `@cb.solve_task(split="train")
async def solve(task_cfg, session):
    await session.apps.kicad.draw()`

  it('is refused at load with what they use, or keeps the others', async () => {
    write('mixed/apps/main.py', module('session.apps.kicad.install()'))
    write(
      'mixed/command/main.py',
      module('helper(session)', 'async def helper(session):\n    session.run_command("ls")'),
    )
    write('mixed/folder/main.py', module('session.launch_window(folder="gui")'))
    write('mixed/broken/main.py', 'import cua_bench, no_such_module')
    write('mixed/plain/main.py', module('session.launch_window(html="x")', solver))
    for (const [name, what] of [
      ['apps', /TASK_UNSUPPORTED.*apps.main\.py: it uses session\.apps,.*launch_window/],
      ['command', /session\.run_command/],
      ['folder', /launch_window\(folder=…\)/],
    ] as const) {
      expect(await wrong(join(directory, 'mixed', name))).toMatch(what)
    }
    const set = { format: 'cua-bench', directory: 'mixed' }
    expect(await wrong(write('mixed.json', JSON.stringify(set)))).toMatch(/4 of 5 tasks.*leave-out/)
    const [task, other] = await gui.load(write('some.json', JSON.stringify({ ...set, unsupported: 'leave-out' })))
    expect([task?.name, other]).toEqual(['plain-0', undefined])
    // It can be run and judged, but not solved by a solution that uses what is not here.
    expect(task?.data).toMatchObject({ solves: false })
  })
})

describe.runIf(await requireDocker())('a task of cua-bench', () => {
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  it('is set up, solved and judged by its own module', async () => {
    const [first, task] = await gui.load(join(directory, 'tasks'))
    if (task === undefined || first === undefined) throw new Error('no task')
    const ran = (one: Task, list: readonly ScriptStep[]) =>
      attempt({
        environment: gui,
        task: one,
        script: { name: 'x', weight: 1, script: { steps: list } },
        sandbox,
        signal,
      })
    const own = await ran(task, (await gui.scripts.oracle(task)).script.steps)
    expect(own).toMatchObject({ status: 'scored', reward: 1, components: { 1: 1, 2: 0.5 } })
    expect(first.data).toMatchObject({ index: 0, solves: true })
  })
})
