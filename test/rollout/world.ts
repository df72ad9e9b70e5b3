import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { watch } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Task } from '../../src/core/index.ts'
import { type Environment, terminal } from '../../src/envs/index.ts'
import { createProxy, type Proxy, vllmEngine } from '../../src/proxy/index.ts'
import { recordBoxEvents, type RunOptions, type RunSummary, runRollouts } from '../../src/rollout/index.ts'
import { dockerProvider, type SandboxProvider } from '../../src/sandbox/index.ts'
import { openStore, type Store } from '../../src/trajectory/index.ts'
import { tempDir } from '../fixtures/temp-dir.ts'
import { useEngine } from '../fixtures/use-engine.ts'
import { useStore } from '../fixtures/use-store.ts'
import { type EngineProcess, startEngine, type TestEngine } from '../proxy/support.ts'

export const model = 'scripted-hermes'

/** The real parts: a store on disk, the scripted engine as a process, the proxy, and Docker where a test needs it. */
export interface World extends AsyncDisposable {
  readonly store: Store
  readonly engine: TestEngine
  readonly proxy: Proxy
  readonly sandbox: SandboxProvider
  run(options: Partial<RunOptions> & Pick<RunOptions, 'tasks' | 'harness'>): Promise<RunSummary>
  /** Tells the scripted engine its steps for an instruction. */
  script(task: Task, steps: readonly object[]): Promise<void>
}

/** On the store of the worker, with an engine in this process. */
export async function openWorld(...engineFlags: string[]): Promise<World> {
  return worldOn(await useStore(), await useEngine('--model', model, ...engineFlags))
}

/** With a store that no other test uses, and an engine that can be killed. */
export async function openOwnWorld(...engineFlags: string[]): Promise<World & { readonly engine: EngineProcess }> {
  const engine = await startEngine('--model', model, ...engineFlags)
  const store = await openStore(tempDir())
  const world = worldOn(store, engine)
  return {
    ...world,
    engine,
    [Symbol.asyncDispose]: async () => {
      await world[Symbol.asyncDispose]()
      await store.close()
      await engine.stop()
    },
  }
}

function worldOn(store: Store, engine: TestEngine): World {
  const proxy = createProxy({ recorder: store.recorder, engine: vllmEngine({ url: engine.url }) })
  const sandbox = dockerProvider({ onEvent: recordBoxEvents(store.recorder) })
  return {
    store,
    engine,
    proxy,
    sandbox,
    run: (options) => runRollouts({ store, proxy, sandbox, environment: terminal, model, ...options }),
    script: (task, steps) =>
      engine.control('/scripts', { instruction: task.instruction, candidates: [{ name: 'only', weight: 0, steps }] }),
    [Symbol.asyncDispose]: async () => {
      await sandbox.close()
      await proxy.close()
    },
  }
}

export async function terminalTask(name: string): Promise<Task> {
  const [task] = await terminal.load(join(import.meta.dirname, '../../examples/tasks/terminal', name))
  if (task === undefined) throw new Error(`no task ${name}`)
  return task
}

/** Ids of the containers of a run, running or not. */
export function containersOf(runId: string): readonly string[] {
  return listed('-aq', runId)
}

/** Ids of the containers of a run that run. */
export function runningOf(runId: string): readonly string[] {
  return listed('-q', runId)
}

function listed(flag: '-aq' | '-q', runId: string): readonly string[] {
  const { stdout } = spawnSync('docker', ['ps', flag, '--filter', `label=paddock.run=${runId}`], { encoding: 'utf8' })
  return stdout.split('\n').filter((line) => line !== '')
}

/** The task with less time for its agent. */
export function withAgentTimeout(task: Task, timeoutMs: number): Task {
  const data = task.data as { readonly agent: object }
  return { ...task, data: { ...data, agent: { ...data.agent, timeoutMs } } }
}

/** The environment with a verifier that waits until a file is there. */
export function waitingFor(file: string, environment: Environment): Environment {
  return {
    ...environment,
    verify: async (context) => {
      await appears(file, context.signal)
      return environment.verify(context)
    },
  }
}

/** Resolves when the file is there; its directory has to be. */
async function appears(file: string, signal: AbortSignal): Promise<void> {
  const changes = watch(dirname(file), { signal })
  if (existsSync(file)) return
  for await (const _ of changes) if (existsSync(file)) return
}
