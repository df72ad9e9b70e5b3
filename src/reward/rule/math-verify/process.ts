import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Begin } from '../thread/pool.ts'

/** The version that is asked: another one compares otherwise. */
const version = '0.9.0'
const program = fileURLToPath(new URL('compare.py', import.meta.url))
const loadS = 120
const alarmS = 60

const replySchema = z.union([
  z.object({ ready: z.literal(true) }),
  z.object({ result: z.object({ value: z.union([z.literal(0), z.literal(1)]), why: z.string() }) }),
  z.object({ fault: z.string() }),
  z.object({ missing: z.string() }),
])

/**
 * Starts Python with math-verify, as a thread of a pool. Nothing but its pipes leads to it, it gets no variable that
 * could be a secret, and it ends with this process.
 */
export function beginMathVerify(python: string): Begin {
  return (take, lose) => {
    const { PATH, HOME, LANG } = process.env
    const child = spawn(python, ['-B', program, version, String(alarmS)], {
      env: { PATH, HOME, LANG },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const missing = (why: string): void => lose(notThere(python, why))
    let loaded = false
    const slow = setTimeout(() => missing(`it did not load within ${loadS} s`), loadS * 1000).unref()
    child.on('error', ({ message }) => missing(message))
    child.on('close', (code, signal) => {
      const why = `its process ended with ${String(signal ?? code)}`
      if (loaded) lose(why)
      else missing(why)
    })
    child.stdin.on('error', () => undefined)
    createInterface({ input: child.stdout }).on('line', (line) => {
      const reply = read(line)
      loaded ||= reply !== null && 'ready' in reply
      clearTimeout(slow)
      if (reply === null) lose('its process wrote what is no reply')
      else if ('missing' in reply) missing(reply.missing)
      else take(reply)
    })
    const handles = [child, child.stdin, child.stdout].filter((one) => 'ref' in one)
    return {
      postMessage: (request) => child.stdin.write(`${JSON.stringify(request)}\n`),
      ref: () => handles.forEach((one) => one.ref()),
      unref: () => handles.forEach((one) => one.unref()),
      terminate: () => child.kill('SIGKILL'),
    }
  }
}

function read(line: string): z.infer<typeof replySchema> | null {
  try {
    return replySchema.parse(JSON.parse(line))
  } catch {
    return null
  }
}

function notThere(python: string, why: string): PaddockError {
  const message = `${python} cannot use math-verify ${version}: ${why}`
  const fix = `Run: ${python} -m pip install math-verify==${version}. Another Python is named by \`python\` of \`mathVerify\`.`
  return new PaddockError('RULE_FAILED', message, { fix, data: { rule: 'mathVerify' } })
}
