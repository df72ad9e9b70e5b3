import type { Logger } from 'pino'
import type { LogLevel } from './levels.ts'
import { withoutSecrets } from './redact.ts'

/** A logger: an object with fields first, then a few words. `docs/reference/logs.md` lists the fields. */
export type Log = Pick<Logger, 'error' | 'warn' | 'info' | 'debug'> & {
  /** A logger whose lines also say which room they come from. */
  room(name: string): Log
  /** Writes what is buffered. */
  close(): void
}

export interface LogOptions {
  readonly level: LogLevel
  /** Appended to; null: stderr. */
  readonly file: string | null
  /** Values that no line may hold, beside what is a secret by name or shape. */
  readonly secrets?: readonly string[]
}

/**
 * JSON lines, one per happening and none per streamed event. Every line passes {@link withoutSecrets} before it is
 * written, its words too. Throws what opening the file throws.
 */
export async function openLog({ level, file, secrets = [] }: LogOptions): Promise<Log> {
  if (level === 'silent') return silentLog
  // Most commands write no log and need not wait for the library.
  const { pino } = await import('pino')
  // At once and not in the background: a line is worth most when the process dies after it.
  const destination = pino.destination({ ...(file === null ? { dest: 2 } : { dest: file, mkdir: true }), sync: true })
  const logger = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        // A copy of an object is an object.
        log: (fields) => withoutSecrets(fields, secrets) as Record<string, unknown>,
      },
      hooks: {
        logMethod(inputArgs, method) {
          const [fields, ...words] = inputArgs as [unknown, ...unknown[]]
          const clean = words.map((word) => withoutSecrets(word, secrets))
          const first = typeof fields === 'string' ? withoutSecrets(fields, secrets) : fields
          Reflect.apply(method, this, [first, ...clean])
        },
      },
    },
    destination,
  )
  return logOf(logger, () => destination.flushSync())
}

function logOf(logger: Logger, close: () => void): Log {
  return {
    error: logger.error.bind(logger),
    warn: logger.warn.bind(logger),
    info: logger.info.bind(logger),
    debug: logger.debug.bind(logger),
    room: (name) => logOf(logger.child({ room: name }), close),
    close,
  }
}

const nothing = (): void => undefined

/** Says nothing. */
export const silentLog: Log = {
  error: nothing,
  warn: nothing,
  info: nothing,
  debug: nothing,
  room: () => silentLog,
  close: nothing,
}
