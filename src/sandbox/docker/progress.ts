import { stripVTControlCharacters } from 'node:util'
import { traceLines } from './build-trace.ts'

/** One message of a build, pull or import (Docker Engine API, "Build an image"): JSON lines. */
interface Progress {
  readonly stream?: string
  readonly status?: string
  readonly id?: string
  readonly error?: string
  readonly aux?: unknown
}

/**
 * Reads the daemon's progress to its end, line by line, as a terminal would leave it: without colours, of a bar that is drawn
 * again and again the last. Throws an Error with the daemon's words and, as `log`, the last
 * lines before it.
 */
export async function follow(stream: NodeJS.ReadableStream, onLine: (line: string) => void): Promise<void> {
  const log: string[] = []
  let rest = ''
  const take = (text: string): void => {
    if (text.trim() === '') return
    const message = parse(text)
    if (message.error !== undefined) throw new DaemonWords(message.error, log)
    for (const raw of linesOf(message)) {
      const line = shownOf(raw)
      if (line === '') continue
      log.push(line)
      if (log.length > 40) log.shift()
      onLine(line)
    }
  }
  for await (const chunk of stream) {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) take(line)
  }
  take(rest)
}

function shownOf(line: string): string {
  return stripVTControlCharacters(line).trimEnd().split('\r').at(-1)?.trim() ?? ''
}

function linesOf(message: Progress): readonly string[] {
  if (message.id === 'moby.image.id') return []
  if (message.id === 'moby.buildkit.trace') return typeof message.aux === 'string' ? traceLines(message.aux) : []
  return [(message.stream ?? [message.id, message.status].filter((part) => part !== undefined).join(' ')).trim()]
}

/** What the daemon reported inside a stream that began well. */
export class DaemonWords extends Error {
  readonly log: readonly string[]

  constructor(message: string, log: readonly string[]) {
    super(message)
    this.log = log
  }
}

function parse(text: string): Progress {
  try {
    const value: unknown = JSON.parse(text)
    // Every field is checked for presence where it is read.
    return typeof value === 'object' && value !== null ? (value as Progress) : {}
  } catch {
    return { stream: text }
  }
}
