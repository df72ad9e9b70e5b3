import { sha256, type Task } from '../core/index.ts'

/**
 * A task with its digest: SHA-256 over the canonical JSON (keys sorted) of environment, instruction, split and data.
 * The name and the place it was loaded from are not part of it.
 */
export function makeTask(parts: Omit<Task, 'digest'>): Task {
  const { environment, instruction, split, data } = parts
  return { ...parts, digest: sha256(canonical({ environment, instruction, split, data })) }
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
    const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1))
    return `{${sorted.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
}
