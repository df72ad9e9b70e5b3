/**
 * Commands in this process, as `main.ts` runs them: the same arguments, streams, signals and exit codes, without a process that loads
 * the program once more. What is about processes (who is killed, whose lock is left, what starts) takes `paddock.ts`.
 */
import { runCli } from '../../src/cli/program.ts'
import { type Ended, lineTakers, type Place, type Ready, type Serving as ServingProcess } from './paddock.ts'

export { chat, type Ended, type Ready } from './paddock.ts'

/** A running `paddock serve --json`, which is only ever asked to end. */
export type Serving = Omit<ServingProcess, 'kill'>

type Env = Readonly<Record<string, string>>

interface Begun {
  readonly ended: Promise<Ended>
  /** Ctrl-C. */
  cancel(this: void): void
}

function begin(args: readonly string[], env: Env, cwd: string | undefined, onLine: (line: string) => void): Begun {
  const controller = new AbortController()
  let out = ''
  let err = ''
  const code = runCli(args, {
    out: (text) => {
      out += `${text}\n`
      onLine(text)
    },
    err: (text) => (err += `${text}\n`),
    status: () => undefined,
    env: { ...process.env, ...env },
    cwd: cwd ?? process.cwd(),
    colour: false,
    columns: null,
    signal: controller.signal,
  })
  return {
    ended: code.then((ended) => ({ code: ended, out, err })),
    cancel: () => controller.abort(new Error('SIGINT received')),
  }
}

/** One command to its end. */
export function paddock(args: readonly string[], env: Env = {}, place: Pick<Place, 'cwd'> = {}): Promise<Ended> {
  return begin(args, env, place.cwd, () => undefined).ended
}

/** Starts `paddock serve` on free ports. Rejects with what it printed when it ends instead. */
export async function serve(
  data: string,
  args: readonly string[] = [],
  env: Env = {},
  place: Pick<Place, 'cwd'> = {},
): Promise<Serving> {
  const own = ['serve', '--json', '--data', data, '--port', '0', '--control-port', '0']
  const lines = lineTakers()
  const { ended, cancel } = begin([...own, ...args], env, place.cwd, lines.put)
  lines.endWith(ended)
  const ready = (await lines.next()) as unknown as Ready
  return {
    ready,
    nextCall: lines.next,
    stop: () => {
      cancel()
      return ended
    },
    ended,
  }
}
