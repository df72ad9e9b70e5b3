import { type LosslessJson, type LosslessMember, parseLossless, stringifyLossless } from '../../../core/index.ts'

interface SeenCall {
  readonly id: string
  name: string
  /** Argument text that came before the name was known. */
  early: string
  announced: boolean
}

/**
 * Makes the tool-call deltas of a stream what strict clients demand: the first delta of each call carries `id`, `type`
 * and `function.name`; an engine that leaves one out there (vLLM's finishing chunk, vllm-project/vllm#31438, #18412)
 * gets it filled in, and arguments that come before the name wait for it. Later deltas lose the nulls that some engines
 * write there (sgl-project/sglang#35542). With `everyDelta` all three are repeated on each delta, which the AI SDK
 * family accepts; accumulators that append strings (openai-python) would not, so it is not the default.
 */
export class ToolDeltas {
  private readonly seen = new Map<string, SeenCall>()
  private readonly everyDelta: boolean
  private readonly mintId: () => string

  constructor(everyDelta: boolean, mintId: () => string) {
    this.everyDelta = everyDelta
    this.mintId = mintId
  }

  /** The chunk as the client gets it; the same buffer where nothing is missing. */
  complete(chunk: Buffer): Buffer {
    const root = parseLossless(chunk.toString('utf8'))
    let changed = false
    const rewritten = mapMember(root, 'choices', (choices) =>
      mapItems(choices, (choice, position) => {
        const index = member(choice, 'index') ?? String(position)
        return mapMember(choice, 'delta', (delta) =>
          mapMember(delta, 'tool_calls', (calls) =>
            mapItems(calls, (call, at) => {
              const fixed = this.one(`${index}/${member(call, 'index') ?? at}`, call)
              if (fixed !== call) changed = true
              return fixed
            }),
          ),
        )
      }),
    )
    return changed ? Buffer.from(stringifyLossless(rewritten)) : chunk
  }

  private one(key: string, call: LosslessJson): LosslessJson {
    if (call.kind !== 'object') return call
    const fn = call.members.find((m) => m.key === 'function')?.value ?? { kind: 'object', members: [] }
    const id = member(call, 'id')
    const name = member(fn, 'name')
    const args = member(fn, 'arguments')
    const known = this.seen.get(key) ?? { id: id ?? this.mintId(), name: '', early: '', announced: false }
    this.seen.set(key, known)
    if (name !== null && known.name === '') known.name = name
    const announce = this.everyDelta || !known.announced
    if (announce && known.name === '') {
      known.early += args ?? ''
      // Nothing that a client could take for a call: only the index.
      return { kind: 'object', members: call.members.filter((m) => m.key === 'index') }
    }
    const first = !known.announced
    known.announced = true
    const whole = known.early + (args ?? '')
    known.early = ''
    if (first && id !== null && name !== null && member(call, 'type') !== null) return call
    if (!announce && id === null && name === null && !hasNulls(call) && !hasNulls(fn)) return call
    const rest = call.members.filter((m) => m.key !== 'function' && m.key !== 'id' && m.key !== 'type')
    const fnRest = fn.kind === 'object' ? fn.members.filter((m) => m.key !== 'name' && m.key !== 'arguments') : []
    const head = announce ? [entry('id', known.id), entry('type', 'function')] : []
    const fnMembers = [
      ...(announce ? [entry('name', known.name)] : []),
      ...(first || args !== null ? [entry('arguments', whole)] : []),
      ...fnRest,
    ]
    const fnValue: LosslessJson = { kind: 'object', members: fnMembers }
    return { kind: 'object', members: [...rest, ...head, { key: 'function', raw: '"function"', value: fnValue }] }
  }
}

/** The text of a string or number member; null where it is absent, null or empty. */
function member(value: LosslessJson, key: string): string | null {
  if (value.kind !== 'object') return null
  const found = value.members.find((m) => m.key === key)?.value
  if (found?.kind === 'string') return found.value === '' ? null : found.value
  return found?.kind === 'number' ? found.text : null
}

function hasNulls(value: LosslessJson): boolean {
  return value.kind === 'object' && value.members.some((m) => m.value.kind === 'null')
}

function entry(key: string, text: string): LosslessMember {
  return { key, raw: JSON.stringify(key), value: { kind: 'string', value: text, raw: JSON.stringify(text) } }
}

function mapMember(value: LosslessJson, key: string, change: (value: LosslessJson) => LosslessJson): LosslessJson {
  if (value.kind !== 'object') return value
  return { kind: 'object', members: value.members.map((m) => (m.key === key ? { ...m, value: change(m.value) } : m)) }
}

function mapItems(value: LosslessJson, change: (item: LosslessJson, index: number) => LosslessJson): LosslessJson {
  return value.kind === 'array' ? { kind: 'array', items: value.items.map(change) } : value
}
