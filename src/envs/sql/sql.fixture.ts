import type { Task } from '../../core/index.ts'
import type { VerdictDraft } from '../../reward/index.ts'
import type { Box } from '../../sandbox/index.ts'
import { submissionPath } from './box.ts'
import { sql } from './index.ts'

/**
 * The verdict on a submission in a box that stays: a run opens a fresh one for each verdict, which the hundreds of
 * verdicts in tests do not need.
 */
export async function verdictIn(box: Box, task: Task, submission: string | null): Promise<VerdictDraft> {
  const data = new TextEncoder().encode(submission ?? '')
  const entries = submission === null ? [] : [{ type: 'file' as const, path: 'submission.sql', mode: 0o644, data }]
  const content = { found: submission !== null, entries, refused: [], cutShort: false, totalBytes: data.length }
  const artifacts = { items: [{ path: submissionPath, content }] }
  const { signal } = new AbortController()
  return sql.verify({ task, artifacts, openBox: async () => withoutDisposal(box), signal, emit: () => undefined })
}

function withoutDisposal(real: Box): Box {
  return new Proxy(real, {
    get: (target, key) => {
      if (key === Symbol.asyncDispose) return async () => undefined
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
