import type { Id } from '../../core/index.ts'
import type { CallRecord } from '../../trajectory/index.ts'
import type { AnswerView, DialectRequest } from '../dialects/contract.ts'
import type { Client, ClientWatch } from '../http/client.ts'
import type { RememberedCall } from '../session/remembered-call.ts'

/**
 * The answer of an earlier process, for a client that asks for it again: byte for byte what it was, and in no other form.
 * A call that was cut off by the end of that process has none and is only repeated.
 */
export class StoredAnswer implements RememberedCall, ClientWatch {
  readonly id: Id
  readonly phase: 'answered' | 'failed'
  readonly connected = false
  readonly recorded = true
  readonly admitted: RememberedCall['admitted']
  sent: boolean
  repeated: boolean
  private readonly reply: Buffer
  private readonly view: AnswerView
  private readonly delivered: () => void

  constructor({ intent, commit, delivery, superseded }: CallRecord, asked: DialectRequest, delivered: () => void) {
    const kind = commit?.outcome.kind ?? 'interrupted'
    const whole =
      kind === 'complete' || (commit?.outcome.kind === 'client_gone' && commit.outcome.upstream === 'finished')
    this.id = intent.id
    this.phase = whole ? 'answered' : 'failed'
    // Nobody noted whether an error arrived; of a call that was cut off nothing did.
    this.sent = whole ? delivery !== 'unknown' : kind === 'engine_error' || kind === 'refused'
    this.repeated = superseded
    this.reply = Buffer.from(commit?.reply ?? [])
    const { streamed, wantsUsage, wantsLogprobs } = asked.chat
    this.view = { streamed, wantsUsage, wantsLogprobs }
    this.admitted = { form: { requestIdHeader: asked.reply(intent.id).requestIdHeader } }
    this.delivered = delivered
  }

  fits({ streamed, wantsUsage, wantsLogprobs }: AnswerView): boolean {
    const { view } = this
    return (
      this.phase === 'failed' ||
      (streamed === view.streamed && wantsUsage === view.wantsUsage && wantsLogprobs === view.wantsLogprobs)
    )
  }

  attach(client: Client): void {
    client.watch(this)
    if (!client.view.streamed) client.sendJson(200, this.reply)
    else {
      client.startStream()
      client.end(this.reply)
    }
  }

  clientSent(): void {
    if (this.sent) return
    this.sent = true
    this.delivered()
  }

  clientGone(): void {}

  clientDrained(): void {}
}
