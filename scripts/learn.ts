/** A model that learns `doors` or `repeat` (examples/train): a real vLLM, a real `paddock serve`, the reference loop. */
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const train = join(root, 'examples/train')

/** What is learned, and by which model. */
export interface Subject {
  readonly name: string
  /** Below examples/train: makes the base model and prints its directory. */
  readonly base: string
  /** Below examples/train: runs the rollouts and trains. */
  readonly learn: string
  /** Of vLLM. */
  readonly flags: readonly string[]
  /** Of vLLM and of the trainer. */
  readonly env?: Readonly<Record<string, string>>
}

/** Two million parameters, of which a step takes seconds. */
export const doors: Subject = {
  name: 'doors',
  base: 'doors/tiny.py',
  learn: 'doors/learn.py',
  flags: ['--max-model-len', '256', '--max-num-seqs', '32'],
}

/** SmolLM2-135M. Engine and trainer compute at the same time, so each has a core. */
export const repeat: Subject = {
  name: 'repeat',
  base: 'repeat/untied.py',
  learn: 'repeat/learn.py',
  flags: ['--max-model-len', '128', '--max-num-seqs', '16'],
  env: { OMP_NUM_THREADS: '1' },
}

export interface VllmOrder {
  /** The directory that `scripts/real-up` printed. */
  readonly cache: string
  /** Weights and tokenizer. */
  readonly directory: string
  /** What requests call the model. */
  readonly model: string
  readonly flags: readonly string[]
  /** A free one where none is named. */
  readonly port?: number
  /** Beside those of a small machine, and before them. */
  readonly env?: Readonly<Record<string, string>>
}

/** A running server. */
export interface Vllm extends AsyncDisposable {
  readonly url: string
  /** SIGKILL to the server and to all that it started; resolves when the server is gone. */
  kill(): Promise<void>
}

/**
 * Few threads and little memory: these servers share a small machine with what asks them. Their core computes in its own
 * process, since a worker would import everything once more; on CPUs vLLM allows that where this variable is 0.
 */
const small = {
  VLLM_ENABLE_V1_MULTIPROCESSING: '0',
  VLLM_CPU_KVCACHE_SPACE: '1',
  VLLM_CPU_OMP_THREADS_BIND: 'nobind',
  OMP_NUM_THREADS: '2',
  HF_HUB_OFFLINE: '1',
  VLLM_NO_USAGE_STATS: '1',
  DO_NOT_TRACK: '1',
  VLLM_SERVER_DEV_MODE: '1',
}

/** Starts vLLM on loopback and waits until it says that it is ready. Rejects with its last words when it ends before. */
export async function startVllm({ cache, directory, model, flags, port: named, env }: VllmOrder): Promise<Vllm> {
  const port = named ?? (await freePort())
  // The console script of the CPU package asks for a package of another name; its module does not.
  const args = ['-m', 'vllm.entrypoints.openai.api_server', '--model', directory, '--served-model-name', model]
  const size = ['--max-model-len', '2048', '--max-num-seqs', '8', '--dtype', 'float32', '--enforce-eager']
  const inOne = ['--distributed-executor-backend', 'uni']
  const open = ['--host', '127.0.0.1', '--port', String(port), '--enable-scale-out', '--generation-config', 'vllm']
  const child = spawn(join(cache, 'venv/bin/python'), [...args, ...size, ...inOne, ...open, ...flags], {
    env: { ...process.env, ...small, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const gone = once(child, 'exit')
  const last: string[] = []
  const ready = Promise.withResolvers<void>()
  for (const output of [child.stdout, child.stderr]) {
    createInterface({ input: output }).on('line', (line) => {
      last.push(line)
      if (last.length > 60) last.shift()
      if (line.includes('Application startup complete')) ready.resolve()
    })
  }
  void gone.then(() => ready.reject(new Error(`vLLM ended before it was ready:\n${last.join('\n')}`)))
  await ready.promise
  const url = `http://127.0.0.1:${port}`
  await listening(url)
  return {
    url,
    async kill() {
      const server = child.pid
      if (server === undefined) return
      for (const pid of [server, ...descendantsOf(server)]) process.kill(pid, 'SIGKILL')
      await gone
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await gone
    },
  }
}

/** A server says that it has started before it listens. */
async function listening(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(`${url}/health`).catch(() => null)
    if (answer?.ok === true) return
    await setTimeout(20)
  }
}

/** The engine core is a child of the server, and its worker one of the core. */
function descendantsOf(pid: number): readonly number[] {
  const told = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  const children = told.split(' ').filter(Boolean).map(Number)
  return children.flatMap((child) => [...descendantsOf(child), child])
}

/** vLLM on a copy of the base model, which every run begins by loading anew. */
export interface Classroom extends AsyncDisposable {
  readonly subject: Subject
  readonly cache: string
  readonly base: string
  readonly served: string
  readonly engine: Vllm
}

/** Makes the base model, once per content of what it is made from, and serves it. */
export async function openClassroom(
  cache: string,
  subject: Subject,
  told: 'inherit' | 'ignore' = 'ignore',
): Promise<Classroom> {
  const made = execFileSync(join(cache, 'venv/bin/python'), ['-B', join(train, subject.base), cache], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', told],
  })
  const base = made.trim().split('\n').at(-1) ?? ''
  const served = await mkdtemp(join(tmpdir(), `paddock-${subject.name}-`))
  await cp(base, served, { recursive: true })
  const { flags, env } = subject
  const engine = await startVllm({ cache, directory: served, model: 'policy', flags, ...(env && { env }) })
  return {
    subject,
    cache,
    base,
    served,
    engine,
    async [Symbol.asyncDispose]() {
      await engine[Symbol.asyncDispose]()
      await rm(served, { recursive: true })
    },
  }
}

export interface Lesson {
  /** Name of the run; those of its two evaluations begin with it. */
  readonly name: string
  /** Paddock's data directory. */
  readonly data: string
  readonly seed: number
  readonly steps: number
  readonly lag: number
  /** Rewards are shuffled within their groups. */
  readonly control: boolean
}

/** What learn.py wrote. */
export interface Learned {
  /** Mean reward of held-out tasks. */
  readonly before: number
  readonly after: number
  /** Of as many changes among them, were nothing learned (McNemar, exact, two-sided). */
  readonly p: number
  readonly tasks: number
  readonly seconds: number
  readonly steps: readonly {
    readonly step: number
    readonly values: Readonly<Record<string, number>>
    readonly mismatch: { readonly kl: number; readonly max: number; readonly p99: number }
  }[]
  /** Every call that came to the trainer, when, and how many tokens of it train. */
  readonly trained: readonly (readonly [step: number, callId: string, tokens: number])[]
}

/** One whole run: held-out tasks, training, held-out tasks. `onLine` gets what learn.py prints. */
export async function learn(
  room: Classroom,
  { name, data, seed, steps, lag, control }: Lesson,
  onLine: (line: string) => void = () => undefined,
): Promise<Learned> {
  const directory = await mkdtemp(join(tmpdir(), 'paddock-learned-'))
  const paddock = await serve(data, room.engine.url)
  try {
    const out = join(directory, 'out.json')
    const numbers = ['--name', name, '--seed', `${seed}`, '--steps', `${steps}`, '--lag', `${lag}`]
    const places = ['--base', room.base, '--weights', room.served, '--out', out, '--url', paddock.control]
    const args = ['-B', join(train, room.subject.learn), ...places, ...numbers, ...(control ? ['--control'] : [])]
    const token = (await readFile(join(data, 'control-token'), 'utf8')).trim()
    const child = spawn(join(room.cache, 'venv/bin/python'), args, {
      env: {
        ...process.env,
        ...room.subject.env,
        PYTHONPATH: join(root, 'clients/python/src'),
        PADDOCK_CONTROL_TOKEN: token,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const last: string[] = []
    for (const output of [child.stdout, child.stderr]) {
      createInterface({ input: output }).on('line', (line) => {
        last.push(line)
        if (last.length > 60) last.shift()
        onLine(line)
      })
    }
    const [code] = await once(child, 'close')
    if (code !== 0) throw new Error(`learn.py ended with ${String(code)}:\n${last.join('\n')}`)
    return JSON.parse(await readFile(out, 'utf8')) as Learned
  } finally {
    paddock.child.kill('SIGINT')
    await once(paddock.child, 'exit')
    await rm(directory, { recursive: true })
  }
}

/** `paddock serve` in the background, once it is ready. */
async function serve(
  data: string,
  engine: string,
): Promise<{ readonly child: ChildProcessByStdio<null, Readable, null>; readonly control: string }> {
  const ports = ['--port', '0', '--control-port', '0']
  const child = spawn(join(root, 'paddock'), ['--data', data, '--json', 'serve', '--engine', engine, ...ports], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { type, control } = JSON.parse(line) as { type?: string; control: string }
    if (type !== 'ready') continue
    child.stdout.resume()
    return { child, control }
  }
  throw new Error('paddock serve ended before it was ready')
}
