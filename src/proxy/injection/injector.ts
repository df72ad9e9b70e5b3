import type { CallClass } from '../../core/index.ts'
import type { CallRecord, Injection, SessionLog } from '../../trajectory/index.ts'
import type { ConversationMatch } from '../session/conversation.ts'
import { answersIn, type InjectedMessages, type InjectedRequest, putInto, takesOut } from './place.ts'

/** What a request of a session's main conversation became. */
export interface InjectedCall {
  /** Null: nothing stands in this prompt. */
  readonly put: InjectedMessages | null
  /** What the prompt of the answer before held is gone: this one cannot go on from it, by design. */
  readonly removed: boolean
}

/** Puts a session's injections into its prompts. Which ones is told by the request alone, so that a prompt can be made again. */
export class Injector {
  readonly #items: readonly Injection[]
  /** Answers in the first prompt, which the harness wrote itself. */
  #shown: number | null = null

  constructor(items: readonly Injection[]) {
    this.#items = items
  }

  /** Null where nothing of the call is changed. */
  into(
    request: InjectedRequest,
    { callClass, match }: { readonly callClass: CallClass; readonly match: ConversationMatch | null },
  ): InjectedCall | null {
    if (callClass !== 'main') return null
    this.#shown ??= answersIn(request.messages)
    const put = putInto(this.#items, request, this.#shown)
    const removed =
      match !== null &&
      match.continues.length > 0 &&
      !match.edited &&
      takesOut(this.#items, answersIn(request.messages.slice(0, match.at)) - this.#shown)
    return put === null && !removed ? null : { put, removed }
  }
}

/** One for all calls of a log. */
const injectors = new WeakMap<SessionLog['calls'], Injector>()

/** What the policy saw of a recorded request; null: what the harness wrote. Calls are asked for with their bodies. */
export function injectedAgain(
  { session, calls }: Pick<SessionLog, 'session' | 'calls'>,
  { intent }: CallRecord,
  read: (call: CallRecord) => InjectedRequest | null,
): InjectedMessages | null {
  const { inject = [] } = session.policy
  if (inject.length === 0 || intent.callClass !== 'main') return null
  const known = injectors.get(calls)
  const injector = known ?? new Injector(inject)
  if (known === undefined) {
    injectors.set(calls, injector)
    const first = calls.find((call) => call.intent.callClass === 'main')
    const asked = first === undefined ? null : read(first)
    if (asked !== null) injector.into(asked, { callClass: 'main', match: null })
  }
  const own = calls.find((call) => call.intent.id === intent.id)
  const asked = own === undefined ? null : read(own)
  return asked === null ? null : (injector.into(asked, { callClass: 'main', match: null })?.put ?? null)
}
