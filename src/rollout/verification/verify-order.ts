import type { Task } from '../../core/index.ts'
import type { Environment } from '../../envs/index.ts'
import type { SandboxProvider } from '../../sandbox/index.ts'
import type { Blobs } from '../../trajectory/index.ts'
import { faultLine } from '../judge-end.ts'
import type { FindRoleEngine } from '../role-engine.ts'
import { verifyStored } from '../rescore/verify-stored.ts'
import { faulted } from '../verify.ts'
import type { Verified, VerifyOrder } from './contract.ts'

/** What whoever verifies brings. */
export interface OrderParts {
  readonly environment: Environment
  /** The task as its files stand here. Default: as the order says. */
  readonly task?: () => Promise<Task>
  /** Asked for when there is something to verify. */
  readonly sandbox: () => Promise<SandboxProvider>
  /** What the names of the work stand for. */
  readonly blobs: Pick<Blobs, 'get'>
  /** Default: none. */
  readonly judge?: FindRoleEngine | null
  readonly signal: AbortSignal
}

/** Applies the verifier, on its budget. A fault is a draft without a number. Throws the signal's reason alone. */
export async function verifyOrder(o: OrderParts, order: VerifyOrder): Promise<Verified> {
  const { environment, blobs, judge = null, signal } = o
  const { work, toolCalls, budgetMs, labels } = order
  const late = AbortSignal.timeout(budgetMs)
  const limit = AbortSignal.any([signal, late])
  try {
    const task = (await o.task?.()) ?? order.task
    const sandbox = await o.sandbox()
    const emit = (): void => undefined
    const told = toolCalls === null ? {} : { toolCalls }
    const judged = { rolloutId: null, purpose: 'verification' }
    const verifier = { blobs, environment, sandbox, labels, signal: limit, emit, judge, judged, ...told }
    return await verifyStored(verifier, task, work)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    return faulted(late.aborted ? `it took longer than ${budgetMs} ms` : faultLine(error), environment, order.task)
  }
}
