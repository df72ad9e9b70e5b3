import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { PaddockError } from '../core/index.ts'

/** Help of the option `--inject`. */
export const injectHelp = 'JSON list of texts that the policy sees and the harness does not: {at, text, label, keep}'

/** Reads a list of injections; what they are is checked with the rest of the request. Throws `USAGE`. */
export async function readInjections(cwd: string, path: string): Promise<readonly unknown[]> {
  const fix = 'Give a file such as [{"at": "task", "text": "Look at the log first.", "label": "hint"}].'
  const text = await readFile(resolve(cwd, path), 'utf8')
  try {
    const read: unknown = JSON.parse(text)
    if (Array.isArray(read)) return read
  } catch {
    // Told below.
  }
  throw new PaddockError('USAGE', `--inject: ${path} is not a JSON list`, { fix })
}
