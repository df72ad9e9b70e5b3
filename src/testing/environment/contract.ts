import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Task, Verdict } from '../../core/index.ts'
import {
  type Artifacts,
  attempt,
  type BoxNeeds,
  type Environment,
  type NamedScript,
  openTaskBox,
  packArtifact,
  runScript,
  unpackArtifact,
  verifierBoxes,
} from '../../envs/index.ts'
import { PaddockError } from '../../core/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'

/** What the suite needs to know of an environment. */
export interface EnvironmentContractOptions {
  readonly environment: Environment
  /** A place with a few of its tasks; the first is run. */
  readonly tasks: string
  /** Folders that its loader must refuse, and what the error must say of the place. */
  readonly refused?: readonly { readonly path: string; readonly code: string; readonly names: RegExp }[]
  /** A fresh provider; the suite closes it. */
  make(): Promise<SandboxProvider>
}

const chatToolName = /^[a-zA-Z0-9_-]{1,64}$/

/** Everything that an environment promises, against real boxes. One task is run; `validate` runs them all. */
export function environmentContract(options: EnvironmentContractOptions): void {
  const { environment } = options
  let sandbox: SandboxProvider
  let tasks: readonly Task[]
  let task: Task
  const signal = new AbortController().signal

  beforeAll(async () => {
    sandbox = await options.make()
    tasks = await environment.load(options.tasks, { signal })
    const [first] = tasks
    if (first === undefined) throw new Error(`no task in ${options.tasks}`)
    task = first
  }, 300_000)

  afterAll(async () => {
    await sandbox?.close()
  })

  describe('tasks', () => {
    it('have a name of their own and a digest that a second reading gives again', async () => {
      expect(new Set(tasks.map((t) => t.name)).size).toBe(tasks.length)
      const again = await environment.load(options.tasks)
      expect(again.map((t) => t.digest)).toEqual(tasks.map((t) => t.digest))
      expect(new Set(tasks.map((t) => t.digest)).size).toBe(tasks.length)
    })

    it('survive the way through JSON', () => {
      for (const t of tasks) {
        const copy: Task = JSON.parse(JSON.stringify(t))
        expect(environment.box(copy)).toEqual(environment.box(t))
      }
    })

    it('of another environment or with other data are refused', () => {
      const code = (t: Task) => {
        try {
          environment.box(t)
          return 'accepted'
        } catch (error) {
          return error instanceof PaddockError ? error.code : String(error)
        }
      }
      expect(code({ ...task, environment: 'another' })).toBe('TASK_INVALID')
      expect(code({ ...task, data: 'not the data' })).toBe('TASK_INVALID')
    })

    for (const bad of options.refused ?? []) {
      it(`refuses ${bad.path.split('/').at(-1)} by name`, async () => {
        const error = await environment.load(bad.path).then(
          () => null,
          (reason: unknown) => reason,
        )
        expect(error).toMatchObject({ code: bad.code })
        expect(error instanceof PaddockError ? error.line() : '').toMatch(bad.names)
      })
    }
  })

  describe.each(environment.generators)('the generator $name', (generator) => {
    const bytesOf = async (seed: number, level: number) => {
      const place = `${generator.name}:${seed}:${level}`
      return JSON.stringify(await environment.load(place, { signal }))
    }
    const each = Array.from({ length: generator.levels }, (_, i) => i + 1)

    it('gives the same task for the same seed, and another one for another', async () => {
      for (const level of each) {
        const first = await Promise.all([0, 1, 2, 3].map((seed) => bytesOf(seed, level)))
        expect(await Promise.all([0, 1, 2, 3].map((seed) => bytesOf(seed, level)))).toEqual(first)
        expect(new Set(first).size).toBe(first.length)
      }
      expect(new Set(await Promise.all(each.map((level) => bytesOf(0, level)))).size).toBe(each.length)
    })

    it('knows no level beyond its last', async () => {
      await expect(bytesOf(0, each.length + 1)).rejects.toMatchObject({ code: 'TASK_INVALID' })
    })

    it('gives tasks whose gold passes, where nothing fails', async () => {
      const [made] = await environment.load(`${generator.name}:0:1`, { signal })
      if (made === undefined) throw new Error('the generator gave no task')
      const verdict = async (script: NamedScript) => attempt({ environment, task: made, script, sandbox, signal })
      expect((await verdict(await environment.scripts.oracle(made))).reward).toBe(1)
      expect((await verdict(environment.scripts.nullAgent)).reward).toBe(0)
    })
  })

  describe('tools', () => {
    it('have names and schemas that chat APIs take, and answer bad arguments with an error', async () => {
      const tools = environment.tools(task)
      expect(new Set(tools.map((tool) => tool.name)).size).toBe(tools.length)
      await using box = await openTaskBox(sandbox, environment.box(task), { labels: { role: 'probe' }, signal })
      for (const tool of tools) {
        expect(tool.name).toMatch(chatToolName)
        expect(tool.description).not.toBe('')
        expect(tool.inputSchema).toMatchObject({ type: 'object' })
        expect(await tool.run({ task, attempt: { id: 'attempt' }, box, signal }, 'not an object')).toMatchObject({
          status: 'error',
        })
      }
    })

    it('say infra, never error, when the box is gone', async () => {
      const [tool] = environment.tools(task)
      const oracle = await environment.scripts.oracle(task)
      const step = oracle.script.steps.find((s) => 'shell' in s || 'tool' in s)
      if (tool === undefined || step === undefined) return
      const box = await openTaskBox(sandbox, environment.box(task), { labels: { role: 'probe' }, signal })
      await box.destroy()
      let asked = false
      const gone = new Proxy(box, {
        get: (target, name) => {
          asked = true
          const member: unknown = Reflect.get(target, name)
          return typeof member === 'function' ? member.bind(target) : member
        },
      })
      const input = 'shell' in step ? { command: step.shell, cmd: step.shell } : 'tool' in step ? step.args : {}
      const outcome = await tool.run({ task, attempt: { id: 'attempt' }, box: gone, signal }, input)
      // What asks for nothing in the box cannot fail by it.
      if (asked) expect(outcome).toMatchObject({ status: 'infra' })
    })
  })

  describe('verdicts', () => {
    const script = async (which: 'oracle' | 'null' | 'cheat') => {
      const [cheat] = await environment.scripts.cheats(task)
      const oracle = await environment.scripts.oracle(task)
      const chosen = which === 'oracle' ? oracle : which === 'null' ? environment.scripts.nullAgent : cheat
      if (chosen === undefined) throw new Error('the task knows no cheat')
      return attempt({ environment, task, script: chosen, sandbox, signal })
    }

    it('gold passes', async () => {
      const verdict = await script('oracle')
      expect(verdict).toMatchObject({ status: 'scored', reward: 1, trust: expect.any(String) })
      expect(verdict.verifier.version).toBe(environment.verifierVersion)
      expect(verdict.verifier.sha256).toMatch(/^[0-9a-f]{64}$/)
    })

    it('nothing fails', async () => {
      expect(await script('null')).toMatchObject({ reward: 0 })
    })

    it('a known cheat fails', async () => {
      expect(await script('cheat')).toMatchObject({ reward: 0 })
    })

    it('a fault of the sandbox is no reward', async () => {
      let asked = false
      const openBox = async () => {
        asked = true
        throw new PaddockError('SANDBOX_UNAVAILABLE', 'the daemon went away')
      }
      const artifacts: Artifacts = { items: [] }
      const verdict = await environment.verify({ task, artifacts, openBox, signal, emit: () => undefined })
      // A rule on the host asks for no box, so that no box can fail it.
      if (!asked && verdict.trust === 'host') return
      expect(verdict).toMatchObject({ status: 'infra_error' satisfies Verdict['status'], reward: null })
    })

    it('an unreadable verifier is no reward', async () => {
      let asked = false
      const openBox = async (needs: BoxNeeds) => {
        asked = true
        const box = await verifierBoxes(sandbox, { labels: {}, signal })(needs)
        await box.destroy()
        return box
      }
      const verdict = await environment.verify({
        task,
        artifacts: { items: [] },
        openBox,
        signal,
        emit: () => undefined,
      })
      if (asked || verdict.trust !== 'host') expect(verdict.reward).toBeNull()
    })

    it('an abort rejects and gives no verdict', async () => {
      const abort = new AbortController()
      const openBox = async (needs: BoxNeeds) => {
        const box = await verifierBoxes(sandbox, { labels: {}, signal })(needs)
        abort.abort(new Error('enough'))
        return box
      }
      const context = { task, artifacts: { items: [] }, openBox, signal: abort.signal, emit: () => undefined }
      const outcome = await environment.verify(context).catch((error: unknown) => error)
      if (abort.signal.aborted) {
        expect(outcome).toMatchObject({ message: 'enough' })
        return
      }
      // It needs no box: then it looks at the signal by itself.
      abort.abort(new Error('enough'))
      await expect(environment.verify(context)).rejects.toThrow('enough')
    })
  })

  describe('artifacts', () => {
    it('of the same work are the same bytes, and come back from them', async () => {
      const oracle = await environment.scripts.oracle(task)
      const packed = async () => {
        await using box = await openTaskBox(sandbox, environment.box(task), { labels: { role: 'probe' }, signal })
        const context = { task, attempt: { id: 'attempt' }, box, signal, emit: () => undefined }
        await environment.setup(context)
        await runScript({ ...context, environment, script: oracle.script })
        const { items } = await environment.collect(context)
        return Promise.all(items.filter((item) => item.content.found).map(packArtifact))
      }
      const first = await packed()
      expect((await packed()).map((item) => item.sha256)).toEqual(first.map((item) => item.sha256))
      expect(first.length).toBeGreaterThan(0)
      for (const item of first) {
        const back = await unpackArtifact(item)
        expect((await packArtifact(back)).sha256).toBe(item.sha256)
      }
    })
  })
}
