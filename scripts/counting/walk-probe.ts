/**
 * Loaded into each thread of a program that `scripts/house walk` starts: keeps V8's precise coverage, and writes which files had a
 * function run since it was asked last. The program is asked by SIGUSR2, its threads over a channel.
 */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { basename, join } from 'node:path'
import { BroadcastChannel, isMainThread, threadId, type Worker, type WorkerOptions } from 'node:worker_threads'

const directory = process.env['PADDOCK_WALK'] ?? '.'
const source = new URL('../../src/', import.meta.url).href
const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

let takes = 0
let entry = ''

/** The answer comes before `post` returns. */
function take(): void {
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw error
    const own = coverage.result.filter(({ url }) => url.startsWith(source))
    entry ||= basename(own.toSorted((a, b) => Number(a.scriptId) - Number(b.scriptId))[0]?.url ?? '')
    // The body of a module is a function too, without a name and from its first byte on.
    const isBody = (name: string, start = 0): boolean => name !== '' || start > 0
    const files = own
      .filter(({ functions }) =>
        functions.some(
          ({ functionName, ranges: [range] }) => isBody(functionName, range?.startOffset) && (range?.count ?? 0) > 0,
        ),
      )
      .map(({ url }) => url.slice(source.length))
    takes += 1
    writeFileSync(
      join(directory, `${takes}-${process.pid}-${threadId}.json`),
      JSON.stringify({
        take: takes,
        thread: isMainThread
          ? process.argv
              .slice(1, 3)
              .map((arg) => basename(arg))
              .join(' ')
          : entry,
        files,
      }),
    )
  })
}

type Message =
  | { readonly kind: 'hello' | 'done' | 'bye'; readonly thread: number }
  /** Null: every thread. */
  | { readonly kind: 'take'; readonly thread: number | null }

const channel = new BroadcastChannel('paddock-walk')
channel.unref()
const send = (message: Message): void => channel.postMessage(message)
const listen = (onMessage: (message: Message) => void): void => {
  channel.onmessage = (event) => onMessage((event as { data: Message }).data)
}

if (isMainThread) probeMain()
else {
  listen((message) => {
    if (message.kind !== 'take' || (message.thread ?? threadId) !== threadId) return
    take()
    send({ kind: 'done', thread: threadId })
  })
  send({ kind: 'hello', thread: threadId })
}
process.on('exit', () => {
  take()
  if (!isMainThread) send({ kind: 'bye', thread: threadId })
})

function probeMain(): void {
  const threads = new Set<number>()
  const waiting = new Map<number, () => void>()
  listen((message) => {
    if (message.kind === 'hello') threads.add(message.thread)
    if (message.kind === 'bye') threads.delete(message.thread)
    if (message.kind === 'bye' || message.kind === 'done') waiting.get(message.thread)?.()
  })
  const taken = (thread: number): Promise<void> => new Promise((resolve) => waiting.set(thread, resolve))
  process.on('SIGUSR2', () => {
    const all = [...threads].map(taken)
    send({ kind: 'take', thread: null })
    take()
    void Promise.all(all).then(() => process.stderr.write('walk: taken\n'))
  })
  // Threads get their own options, and most end by `terminate`, which runs no handler in them.
  const threading = createRequire(import.meta.url)('node:worker_threads') as { Worker: typeof Worker }
  threading.Worker = class extends threading.Worker {
    constructor(file: string | URL, o: WorkerOptions = {}) {
      super(file, { ...o, execArgv: [...(o.execArgv ?? []), '--import', import.meta.url] })
    }
    override async terminate(): Promise<number> {
      const thread = this.threadId
      if (threads.delete(thread)) {
        const asked = taken(thread)
        send({ kind: 'take', thread })
        await asked
      }
      return super.terminate()
    }
  }
  syncBuiltinESMExports()
}
