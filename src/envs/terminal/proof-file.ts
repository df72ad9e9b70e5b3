import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Task } from '../../core/index.ts'
import type { TaskProof } from '../contract.ts'
import type { TaskOf } from '../define.ts'
import type { TerminalData } from './data.ts'

/** In the task's folder, so that it is copied with the task. It is no part of the task's digest. */
const name = 'validated.json'

const proof = z.object({ transplant: z.boolean(), tests: z.array(z.string()) })
const file = z.object({ verifier: z.string(), proofs: z.record(z.string(), proof) })

/** What `paddock validate` found out about a task, or about one of its steps; null if it never ran on this task. */
export async function readProof({ source, digest, data }: TaskOf<TerminalData>): Promise<TaskProof | null> {
  if (data.files !== undefined) return null
  const text = await readFile(join(source, name), 'utf8').catch(() => null)
  if (text === null) return null
  const parsed = file.safeParse(jsonOf(text))
  return parsed.success ? (parsed.data.proofs[digest] ?? null) : null
}

/** Keeps what validation found out about a task and its steps, by digest. Throws what the file system throws. */
export async function writeProof(
  { source, data }: TaskOf<TerminalData>,
  proofs: ReadonlyMap<Task['digest'], TaskProof>,
  verifier: string,
): Promise<void> {
  if (data.files !== undefined) return
  const kept = { verifier, proofs: Object.fromEntries(proofs) }
  await writeFile(join(source, name), `${JSON.stringify(kept, null, 2)}\n`)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
