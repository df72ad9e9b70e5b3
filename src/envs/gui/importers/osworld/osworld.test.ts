import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { tempDir } from '../../../../../test/fixtures/temp-dir.ts'
import { isPaddockError } from '../../../../core/index.ts'
import { dockerProvider, type SandboxProvider } from '../../../../sandbox/index.ts'
import { requireDocker } from '../../../../testing/sandbox/index.ts'
import { attempt } from '../../../attempt.ts'
import { toArtifact } from '../../record.ts'
import { uuid5 } from '../../importer/assets.ts'
import type { Found } from './metrics/index.ts'
import { renameTask, searchTask, terminalSet, terminalTask } from './osworld.fixture.ts'
import { osworldMachine } from '../../osworld/index.ts'
import { windowNamed } from '../../osworld/window-named.ts'
import { runSteps, type Stage } from './setup.ts'
import { foundArtifact } from './verify.ts'
import { builtInGui } from '../../../../builtin/index.ts'

const untrusting = builtInGui({ trustTasks: false })

const signal = new AbortController().signal
const gui = builtInGui({ trustTasks: true })
const directory = tempDir()
const write = (name: string, content: unknown) => {
  const path = join(directory, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}
let made = 0
/** A set of one task, in a folder of its own. */
const setOf = (task: object, more: object = {}) => {
  made += 1
  write(`${made}/tasks/os/task.json`, task)
  return write(`${made}/set.json`, { format: 'osworld', directory: 'tasks', ...more })
}
const wrong = async (path: string) => {
  const error: unknown = await gui.load(path).catch((reason: unknown) => reason)
  return isPaddockError(error) ? error.line() : error
}
const evaluator = (given: object) => ({ ...renameTask, evaluator: { ...renameTask.evaluator, ...given } })
const step = (type: string, parameters: object) => ({ ...renameTask, config: [{ type, parameters }] })

describe('task files of OSWorld', () => {
  it('are found as a file, as a folder of domains, and by a set', async () => {
    write('all/examples/os/a.json', renameTask)
    write('all/examples/chrome/b.json', searchTask)
    const names = async (path: string) => (await gui.load(path)).map(({ name }) => name)
    expect(await names(join(directory, 'all/examples/os/a.json'))).toEqual([renameTask.id])
    expect(await names(join(directory, 'all/examples'))).toEqual([searchTask.id, renameTask.id])
    const [task] = await gui.load(
      write('all/set.json', { format: 'osworld', directory: 'examples', ids: ['e0df059f'] }),
    )
    expect(task).toMatchObject({ name: renameTask.id, instruction: renameTask.instruction, environment: 'gui' })
    expect(task?.data).toMatchObject({ tier: 'desktop', screen: { width: 1920, height: 1080 }, conj: 'and' })
  })

  it('are refused where they cannot be run, with the place and the fix', async () => {
    expect(await wrong(setOf(evaluator({ func: 'compare_table' })))).toMatch(
      /TASK_UNSUPPORTED.*evaluator\.func: the metric compare_table is not built in.*1 of 1.*sidecar.*leave-out/,
    )
    expect(await wrong(setOf(evaluator({ result: { type: 'vlc_config' } })))).toMatch(/no getter vlc_config.*vm_file/)
    expect(await wrong(setOf(step('googledrive', {})))).toMatch(/config\.0: there is no set-up step googledrive/)
    expect(await wrong(setOf(step('sleep', {})))).toMatch(/config\.0: sleep: seconds/)
    expect(
      await wrong(setOf(step('download', { files: [{ url: 'https://a.test/x.txt', path: '/home/user/x.txt' }] }))),
    ).toMatch(/https:\/\/a\.test\/x\.txt would be downloaded.*"assets".*e0df059f.*x\.txt/)
    expect(await wrong(setOf({ ...renameTask, instruction: '' }))).toMatch(/TASK_INVALID.*instruction/)
    expect(await wrong(setOf(evaluator({ func: ['exact_match', 'exact_match'] })))).toMatch(/result: must be a list/)
    expect(await wrong(setOf(renameTask, { oracles: { other: [{ say: 'x' }] } }))).toMatch(/no task other/)
    expect(await wrong(setOf(evaluator({ func: 'compare_table' }), { unsupported: 'leave-out' }))).toMatch(
      /no task is left.*compare_table/,
    )
  })

  it('are left out one by one where the set says so, also those that cannot be read', async () => {
    const path = setOf(renameTask, { unsupported: 'leave-out' })
    write(`${made}/tasks/os/unread.json`, { ...renameTask, id: 'other', instruction: '' })
    write(`${made}/tasks/os/unknown.json`, { ...step('googledrive', {}), id: 'third' })
    expect((await gui.load(path)).map(({ name }) => name)).toEqual([renameTask.id])
  })

  it('take what they would download from a folder, as OSWorld caches it or by address', async () => {
    const url = 'https://a.test/files/x.txt'
    const task = step('download', { files: [{ url, path: '/home/user/Desktop/x.txt' }] })
    // Python: uuid.uuid5(uuid.NAMESPACE_URL, 'https://a.test/files/x.txt')
    expect(uuid5(url)).toBe('7fe00067-63d2-5f8c-b37a-8f5729537eae')
    for (const at of [`${renameTask.id}/${uuid5(url)}_x.txt`, `${renameTask.id}/x.txt`, 'a.test/files/x.txt']) {
      const path = setOf(task, { assets: 'assets' })
      write(`${made}/assets/${at}`, 'x')
      expect(await gui.load(path)).toHaveLength(1)
    }
  })
})

describe('set-up steps of OSWorld', () => {
  /** A machine that answers as OSWorld's server does: what commands come to is told by their first word. */
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      const asked = Buffer.concat(parts).toString()
      response.setHeader('content-type', 'application/json')
      if (request.url === '/screen_size') return void response.end('{"width":800,"height":600}')
      const [, name = ''] = /"command":\["?([a-z-]+)/.exec(asked) ?? []
      ran.push(name)
      const returncode = { sar: 127, pkill: 1, late: ran.filter((one) => one === 'late').length < 3 ? 1 : 0 }[name] ?? 0
      response.end(JSON.stringify({ output: '', error: returncode === 127 ? 'sar: not found' : '', returncode }))
    })
  })
  const ran: string[] = []
  let stage: Stage
  beforeAll(async () => {
    const listening = Promise.withResolvers<void>()
    server.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    const address = server.address()
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0
    const machine = await osworldMachine(`http://127.0.0.1:${port}`)
    const none = async () => undefined
    const browser = {
      tabs: async () => [],
      front: () => Promise.reject(new Error('no tab is needed')),
      openTabs: none,
      closeTabs: none,
    }
    stage = { id: 'the-task', machine: { ...machine, ...browser }, assets: null, cache: new Map(), signal }
  })
  afterAll(() => {
    server.close()
    server.closeAllConnections()
  })
  const command = (name: string, until?: object) => ({
    type: 'execute',
    parameters: { command: [name], ...(until === undefined ? {} : { until }) },
  })

  it('are a fault of infrastructure where a command fails, and the next one is not run', async () => {
    await expect(runSteps([command('sar'), command('next')], stage, 'before')).rejects.toMatchObject({
      code: 'ENVIRONMENT_SETUP_FAILED',
      message: expect.stringMatching(/the-task.*sar.*127.*not found/),
    })
    await expect(runSteps([command('pkill')], stage, 'before')).rejects.toMatchObject({ family: 'infra' })
    expect(ran).toEqual(['sar', 'pkill'])
  })

  it('wait for what they say, five times, and then are one as well', async () => {
    await runSteps([command('late', { returncode: 0 })], stage, 'before')
    await expect(runSteps([command('pkill', { stdout: 'gone' })], stage, 'before')).rejects.toMatchObject({
      code: 'ENVIRONMENT_SETUP_FAILED',
      message: expect.stringContaining('never came to'),
    })
    await runSteps([command('pkill', { returncode: 1 })], stage, 'before')
    expect(ran.filter((one) => one === 'late')).toHaveLength(3)
  })

  it.each([
    ['activate_window', { window_name: 'Budget' }, /no window "Budget"/],
    ['open', { path: '/home/user/budget.xlsx' }, /no window of .*budget\.xlsx has opened/],
  ])('are one where %s waits for a window that never comes', async (type, parameters, message) => {
    const windowless = { ...stage.machine, activateWindow: async () => false, file: async () => null }
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    try {
      const ran = runSteps(
        [{ type, parameters }],
        { ...stage, machine: { ...windowless, launch: async () => undefined } },
        'before',
      )
      const refused = expect(ran).rejects.toMatchObject({ family: 'infra', message: expect.stringMatching(message) })
      await vi.advanceTimersByTimeAsync(21_000)
      await refused
    } finally {
      vi.useRealTimers()
    }
  })

  it('bring no file from outside of the assets, whatever a task file says', async () => {
    const sent: string[] = []
    const upload = async (path: string) => void sent.push(path)
    const assets = join(import.meta.dirname, 'metrics')
    const bring = (local_path: string) =>
      runSteps(
        [{ type: 'upload_file', parameters: { files: [{ local_path, path: '/tmp/in' }] } }],
        { ...stage, assets, machine: { ...stage.machine, upload } },
        'before',
      )
    for (const local of ['../setup.ts', '../../../../../../../../../etc/hostname', 'x/../../setup.ts']) {
      await expect(bring(local)).rejects.toMatchObject({ code: 'TASK_UNSUPPORTED' })
    }
    await bring('index.ts')
    expect(sent).toEqual(['/tmp/in'])
  })

  it('find the browser by the name that OSWorld gives it', () => {
    const window = { id: 1, pid: 1, isActive: true, title: 'New Tab - Chromium', classes: ['chromium'] }
    const query = (name: string) => windowNamed([window], { name, strict: false, byClass: false })
    expect([query('Google Chrome'), query('chrome'), query('Chromeleon')]).toEqual([window, window, null])
  })

  it('go on after an attempt, where the work of the agent may be why they fail', async () => {
    await runSteps([command('pkill'), command('next')], stage, 'after')
    expect(ran.at(-1)).toBe('next')
  })
})

describe('a verdict on a task of OSWorld', () => {
  const value = (given: unknown): Found => ({ kind: 'value', value: given })
  const pass = { result: value('y'), expected: value({ expected: 'y' }) }
  const miss = { result: value('n'), expected: value({ expected: 'y' }) }
  const verdict = async (
    path: string,
    pairs: readonly { result: Found; expected: Found }[],
    ended: 'done' | 'failed' = 'done',
  ) => {
    const [task] = await gui.load(path)
    if (task === undefined) throw new Error('no task')
    const record = { ended, answer: null, actions: 1, forged: 0, state: null }
    const artifacts = { items: [toArtifact(record), foundArtifact(pairs)] }
    const openBox = () => Promise.reject(new Error('no box is needed'))
    return gui.verify({ task, artifacts, openBox, signal, emit: () => undefined })
  }
  const two = (conj: 'and' | 'or') => {
    const each = <T>(one: T) => [one, one]
    return setOf(
      evaluator({
        func: each('exact_match'),
        result: each(renameTask.evaluator.result),
        expected: each(renameTask.evaluator.expected),
        conj,
      }),
    )
  }

  it('joins several metrics, and counts giving up', async () => {
    expect(await verdict(two('and'), [pass, pass])).toMatchObject({ reward: 1, trust: 'shared' })
    expect(await verdict(two('and'), [pass, miss])).toMatchObject({ reward: 0 })
    expect(await verdict(two('or'), [miss, pass])).toMatchObject({ reward: 1 })
    expect(await verdict(two('or'), [miss, { result: null, expected: pass.expected }])).toMatchObject({ reward: 0 })
    expect(await verdict(setOf(renameTask), [pass], 'failed')).toMatchObject({ reward: 0 })
    const hopeless = setOf(evaluator({ func: 'infeasible', result: {}, expected: {} }))
    expect(await verdict(hopeless, [], 'failed')).toMatchObject({ reward: 1 })
    expect(await verdict(hopeless, [])).toMatchObject({ reward: 0 })
    expect(await verdict(setOf(renameTask), [{ result: value('y'), expected: null }])).toMatchObject({
      status: 'unscorable',
      reward: null,
    })
  })

  it('runs no program of a set unless tasks are trusted; a service is asked', async () => {
    const table = evaluator({ func: 'compare_table', options: { rules: [] } })
    const own = setOf(table, { sidecar: { command: ['touch', 'ran'] } })
    await expect(untrusting.load(own)).rejects.toMatchObject({ code: 'TASK_UNTRUSTED', data: { program: 'touch ran' } })
    const [task] = await gui.load(own)
    if (task === undefined) throw new Error('no task')
    const artifacts = { items: [] }
    const late = untrusting.verify({
      task,
      artifacts,
      openBox: () => Promise.reject(new Error('no')),
      signal,
      emit: () => undefined,
    })
    await expect(late).rejects.toMatchObject({ code: 'TASK_UNTRUSTED' })
    const service = setOf(table, { sidecar: { url: 'http://127.0.0.1:1/' } })
    expect(await untrusting.load(service)).toHaveLength(1)
  })

  it('asks a program or a service for what is not built in; their faults are no reward', async () => {
    const table = evaluator({ func: 'compare_table', options: { rules: [] } })
    const program = `let t='';process.stdin.on('data',(d)=>t+=d).on('end',()=>{const r=JSON.parse(t);
      const text=require('node:fs').readFileSync(r.result.file,'utf8');
      console.log(JSON.stringify({score:r.func==='compare_table'&&text==='cells'&&r.expected.expected==='y'?0.75:0}))})`
    const cells = { ...pass, result: { kind: 'file', name: 'a.xlsx', data: Buffer.from('cells') } as const }
    const command = (line: readonly string[]) => setOf(table, { sidecar: { command: line } })
    expect(await verdict(command(['node', '-e', program]), [cells])).toMatchObject({ reward: 0.75 })
    expect(await verdict(command(['node', '-e', 'console.log(2)']), [cells])).toMatchObject({
      status: 'infra_error',
      reward: null,
    })
    expect(await verdict(command(['node', '-e', 'process.exit(3)']), [cells])).toMatchObject({ reward: null })
    expect(await verdict(command(['no-such-program']), [cells])).toMatchObject({ reward: null })
    const service = createServer((request, response) => {
      request.resume().on('end', () => response.end(JSON.stringify({ score: 0.5 })))
    })
    const listening = Promise.withResolvers<void>()
    service.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    const address = service.address()
    const port = typeof address === 'object' ? address?.port : 0
    expect(await verdict(setOf(table, { sidecar: { url: `http://127.0.0.1:${port}/` } }), [cells])).toMatchObject({
      reward: 0.5,
    })
    service.close()
  })
})

describe.runIf(await requireDocker())('a task of OSWorld on a desktop of ours', () => {
  let sandbox: SandboxProvider
  beforeAll(() => {
    sandbox = dockerProvider()
  })
  afterAll(() => sandbox.close())

  it('is a fault of infrastructure where the image lacks what a set-up step runs', async () => {
    const lacking = { ...terminalTask, config: [{ type: 'execute', parameters: { command: ['sar', '1'] } }] }
    const [task] = await gui.load(setOf(lacking, terminalSet))
    if (task === undefined) throw new Error('no task')
    const script = { name: 'nothing', weight: 1, script: { steps: [] } }
    expect(await attempt({ environment: gui, task, script, sandbox, signal })).toMatchObject({
      status: 'infra_error',
      reward: null,
    })
  })

  it('is set up, worked on in a terminal, and scored by its getters', async () => {
    const [task] = await gui.load(setOf(terminalTask, terminalSet))
    if (task === undefined) throw new Error('no task')
    const { script } = await gui.scripts.oracle(task)
    const won = await attempt({
      environment: gui,
      task,
      script: { name: 'oracle', weight: 1, script },
      sandbox,
      signal,
    })
    expect(won).toMatchObject({ status: 'scored', reward: 1, components: { exact_match: 1 } })
  })
})
