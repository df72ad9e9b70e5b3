import type { Id, VerdictDraft } from '../core/index.ts'
import type { VerifyContext } from '../envs/index.ts'
import type { JudgeServer } from '../reward/index.ts'
import type { FindRoleEngine } from './role-engine.ts'

/** What is verified, for whoever reads the judge's session. */
export interface JudgedWork {
  /** Null: of no rollout of this store. */
  readonly rolloutId: Id | null
  /** `verify`, `rescore`, …: the first word of what it is for. */
  readonly purpose: string
}

/**
 * Verifies with a judge within reach, where one is configured. What the verifier asks it stands in one session of role `judge`, opened when
 * it first asks and closed when it is done, and named by the draft. None of it is the policy's, and none of it is trained.
 */
export async function withJudge<T extends VerdictDraft | { readonly missing: string }>(
  find: FindRoleEngine | null,
  { rolloutId, purpose }: JudgedWork,
  verify: (judge: Pick<VerifyContext, 'judge'>) => Promise<T>,
): Promise<T> {
  if (find === null) return verify({})
  let opening: Promise<Opened> | null = null
  const opened: Opened[] = []
  const open = async (): Promise<Opened> => {
    const { proxy, origin, model } = await find()
    const { session, key, baseUrl } = await proxy.openSession({ role: 'judge', rolloutId, labels: { purpose } })
    const close = () => proxy.closeSession(session.id)
    const one = { id: session.id, server: { baseUrl: baseUrl(origin), apiKey: key, model }, close }
    opened.push(one)
    return one
  }
  const ask = async (): Promise<JudgeServer> => {
    opening ??= open()
    // A verifier that asks again after a fault may find it mended.
    opening.catch(() => (opening = null))
    return (await opening).server
  }
  try {
    const draft = await verify({ judge: ask })
    const judgeSessions = opened.map(({ id }) => id)
    return 'missing' in draft || judgeSessions.length === 0 ? draft : { ...draft, judgeSessions }
  } finally {
    for (const one of opened) await one.close()
  }
}

interface Opened {
  readonly id: Id
  readonly server: JudgeServer
  close(): Promise<void>
}
