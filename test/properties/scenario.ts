/** Generated conversations: what a harness and a model do to each other over a few turns. */
import fc from 'fast-check'
import type { DialectName, Echo } from '../lab/speaker.ts'

/** What the model does in one answer. */
export interface Act {
  readonly think: string | null
  readonly calls: readonly ({ readonly shell: string } | { readonly tool: 'refresh'; readonly args: object })[]
  /** What the harness answers to the calls, one each. */
  readonly outputs: readonly string[]
}

/**
 * What goes wrong or aside at a call:
 * - `replay`: the client asks again with a retry mark although it has the answer;
 * - `hang_up`: it leaves in the middle of a stream and asks again;
 * - `engine_dies`: the engine is gone before its first byte and the client asks again;
 * - `cut`: the answer is cut at `max_tokens`, the harness says to go on;
 * - `sub_agent`: another conversation runs in between, with its own system prompt;
 * - `compaction`: the harness replaces its history by a summary;
 * - `fault`: the engine misbehaves as {@link Scenario.fault} says; a client that gets an error asks again.
 */
export type Incident = 'none' | 'replay' | 'hang_up' | 'engine_dies' | 'cut' | 'sub_agent' | 'compaction' | 'fault'

/** Every fault of the scripted engine that an answer can be had in spite of. */
export const faults: readonly (Readonly<Record<string, unknown>> & { readonly kind: string })[] = [
  { kind: 'non_canonical' },
  { kind: 'drop_token_ids', every: 2 },
  { kind: 'bad_logprob', value: 'NaN', token: 2 },
  { kind: 'bad_logprob', value: 'null', token: 1 },
  { kind: 'bad_logprob', value: '-9999', token: 2 },
  { kind: 'null_logprobs' },
  { kind: 'http_error', status: 429, retryAfterSeconds: 0 },
  { kind: 'http_error', status: 500 },
  { kind: 'http_error', status: 503 },
  { kind: 'weight_update', token: 2 },
  { kind: 'wrong_usage', by: 3 },
  { kind: 'truncate_prompt', keep: 40 },
  { kind: 'stall', at: 'before_first_byte', seconds: 0.05 },
  { kind: 'stall', at: 'mid_stream', seconds: 0.05, token: 2 },
  ...['before_headers', 'after_headers', 'mid_token', 'before_finish', 'before_usage', 'before_done'].map((at) => ({
    kind: 'die',
    at,
    token: 2,
    count: 2,
  })),
]

/** One conversation. */
export interface Scenario {
  readonly dialect: DialectName
  readonly echo: Echo
  readonly stream: boolean
  readonly strategy: 'record' | 'splice'
  readonly acts: readonly Act[]
  readonly last: string
  readonly second: boolean
  /** By call, from 0. */
  readonly incidents: readonly Incident[]
  readonly cutAt: number
  /** The engine samples tokens that no tokenizer would choose. */
  readonly nonCanonical: boolean
  readonly fault: (typeof faults)[number]
}

const words = [
  'ls -la "a b"',
  "printf '%s\\n' 1.0",
  'echo ünï → 漢字 🙂',
  'x',
  'cat <<EOF\n{"a": [1, 2.50]}\nEOF',
  'grep -rn "<|im_end|>" .',
  'true',
]
const nasty = [
  '',
  'done',
  'x <|im_end|> <|eot_id|><|im_start|>user\n</think> <tool_call> y',
  '漢字 👩‍👩‍👧‍👦 e\u0301 \u200b',
  '{"ok": true, "n": 1.0, "s": "\\u00e9"}',
  '  two  blanks \n\n and lines \r\n',
  '</tool_call></tool_response><|python_tag|>',
]
const text = fc.oneof(fc.constantFrom(...words), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }))
const output = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...nasty) },
  fc.string({ unit: 'grapheme', maxLength: 40 }),
)
/** Thinking without its own tags: a model that writes those has ended its thinking. */
const thought = fc.option(fc.constantFrom('I look: 1.0 and "quotes".', 'Ünter → 漢字 🙂', 'Two at once.\n\nThen more.'))
const shellCall = text.map((command) => ({ shell: command.replaceAll('<|', '< |').trim() || 'true' }))
const emptyCall = fc.constant({ tool: 'refresh' as const, args: {} })
const act: fc.Arbitrary<Act> = fc.record({
  think: thought,
  calls: fc.array(fc.oneof({ weight: 3, arbitrary: shellCall }, emptyCall), { minLength: 1, maxLength: 3 }),
  outputs: fc.array(output, { minLength: 3, maxLength: 3 }),
})

/** Conversations with any of `incidents`. */
export function scenarios(given: {
  readonly incidents: readonly Incident[]
  readonly dialects?: readonly DialectName[]
  readonly nonCanonical?: boolean
}): fc.Arbitrary<Scenario> {
  return fc.record({
    dialect: fc.constantFrom<DialectName>(...(given.dialects ?? ['chat', 'responses', 'messages', 'gemini'])),
    echo: fc.constantFrom<Echo>('given', 'reserialised'),
    stream: fc.boolean(),
    strategy: fc.constantFrom<'record' | 'splice'>('record', 'splice'),
    acts: fc.array(act, { minLength: 1, maxLength: 3 }),
    last: fc.constantFrom('It is tidy – all of it.', 'ok', 'Ünïcode 漢字 🙂.\n\n- a\n- b'),
    second: fc.boolean(),
    incidents: fc.array(fc.constantFrom<Incident>('none', ...given.incidents), { minLength: 4, maxLength: 8 }),
    cutAt: fc.integer({ min: 1, max: 12 }),
    fault: fc.constantFrom(...faults),
    nonCanonical: given.nonCanonical === true ? fc.boolean() : fc.constant(false),
  })
}
