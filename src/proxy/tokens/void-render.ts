import { PaddockError } from '../../core/index.ts'
import { askRender, type TokenAbility, type TokenEngine } from '../engines/token-engine.ts'
import { ChatBody } from './chat-body.ts'
import { Closings, message, TurnRenders } from './closings.ts'
import { behindLetter, behindPrefix, startsWith } from './splice-ids.ts'

/**
 * Why nothing could ever be spliced behind what this engine renders, null where it can: a short conversation is rendered
 * as a call of the strategy `splice` would have it. Rejects with `ENGINE_UNREACHABLE`, and with `ENGINE_ERROR` where the
 * server fails: nothing is known then.
 */
export async function whyVoid(engine: TokenEngine, { endsTurns }: TokenAbility): Promise<string | null> {
  const renders = new TurnRenders(
    new ChatBody(Buffer.from('{"messages":[]}')),
    (chat) => rendered(engine, chat),
    endsTurns,
  )
  const answered = [message('user', 'x'), message('assistant', 'a')]
  const closing = await new Closings().of(renders)
  const ended = await renders.ended(answered)
  const longer = await renders.opened([...answered, message('user', 'y')])
  if (ended === null || longer === null) return 'it refuses messages that go on behind an answer'
  if (behindPrefix(longer, ended, closing) !== null) return null
  if (endsTurns && sameIds(await renders.opened(answered), ended))
    return 'it opens a turn behind an answer, asked not to'
  // A template may write an answer that stands last otherwise.
  const other = await renders.opened([message('user', 'x'), message('assistant', 'b'), message('user', 'y')])
  const goesOn = other !== null && behindLetter(longer, { one: longer, other, end: 0 }, closing) !== null
  return goesOn ? null : 'a longer conversation does not go on as a render of the answer alone ends'
}

async function rendered(engine: TokenEngine, chat: Buffer): Promise<Int32Array | null> {
  const reply = await askRender(engine, engine.ask, chat)
  if (reply.status >= 500) throw new PaddockError('ENGINE_ERROR', `The engine answers ${reply.status} to a render.`)
  return reply.status >= 400 ? null : (engine.readRender(reply.body)?.ids.ids ?? null)
}

function sameIds(one: Int32Array | null, other: Int32Array): boolean {
  return one !== null && one.length === other.length && startsWith(one, other)
}
