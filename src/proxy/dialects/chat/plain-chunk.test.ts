import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Answer } from './answer.ts'
import { applyEdits, type ChunkView, scanChunk } from './chunk-scan.ts'
import { plainChunk } from './plain-chunk.ts'
import { readInto, readWholeReply } from './reply.ts'
import { answeredTurn } from './turns.ts'

const seed = 20_261_122
/** JSON text of a number: as engines print them, at the edges of what a double holds, and what is no number. */
const number = fc.oneof(
  { weight: 30, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)) },
  { weight: 30, arbitrary: fc.float({ noNaN: true, noDefaultInfinity: true, max: 0 }).map((n) => JSON.stringify(n)) },
  {
    weight: 10,
    arbitrary: fc
      .tuple(fc.bigInt({ min: 0n, max: 10n ** 20n }), fc.nat(24))
      .map(([n, zeros]) => `-0.${'0'.repeat(zeros)}${n}`),
  },
  { weight: 10, arbitrary: fc.constantFrom('-0', '0', '-0.0', '9007199254740993', '1e400', '-1E-7', '0.1e+2') },
  { weight: 10, arbitrary: fc.constantFrom('-9007199254740991.9', '0.30000000000000004', '1.7976931348623157e308') },
  fc.constantFrom('NaN', '-Infinity', '01', '1.', '.5', '-', '+1', '1e', '0x1', '1_0', '"1"'),
)
const quoted = fc.oneof(
  { weight: 50, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => JSON.stringify(text)) },
  {
    weight: 10,
    arbitrary: fc.constantFrom('""', '"\\u0041\\n"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\/"', '"token_id:17"'),
  },
  fc.constantFrom('"\\x41"', '"\\u00g0"', '"\t"', '"\\"', '"a', "'a'", '"__proto__"'),
)
const scalar = fc.oneof(quoted, number, fc.constantFrom('null', 'true', 'false', 'nul', 'nulll', '[]', '{}', '[ ]'))
const anything = fc.oneof(scalar, fc.json())
const or = (usual: fc.Arbitrary<string>, weight = 100) =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: anything })

/** An object of some of these members in any order; now and then one comes twice or under an escaped name. */
const object = (members: Record<string, fc.Arbitrary<string>>, always: readonly string[] = [], rare = '"\\u0069d"') =>
  fc
    .tuple(
      fc.record(members, { requiredKeys: [...always] }),
      fc.boolean(),
      fc.oneof({ weight: 60, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat() }),
      fc.oneof({ weight: 60, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: anything }),
      fc.constantFrom('', '', '', '', ' ', '\t', '\r\n '),
    )
    .chain(([given, shuffle, twice, odd, space]) => {
      const entries = Object.entries(given).map(([name, value]) => `"${name}"${space}:${space}${value}`)
      if (odd !== null) entries.push(`${rare}:${odd}`)
      const again = twice === null ? [] : entries.slice(twice % (entries.length + 1)).slice(0, 1)
      const all = [...entries, ...again]
      const ordered = shuffle ? fc.shuffledSubarray(all, { minLength: all.length }) : fc.constant(all)
      return ordered.map((one) => `{${space}${one.join(`${space},`)}${space}}`)
    })
const list = (item: fc.Arbitrary<string>, maxLength: number) =>
  fc.array(item, { maxLength }).map((items) => `[${items.join(',')}]`)
const id = fc.oneof({ weight: 300, arbitrary: fc.nat(300_000).map(String) }, { weight: 1, arbitrary: number })
const nothing = fc.constant('null')

const entry = object(
  {
    token: or(quoted),
    logprob: or(number),
    bytes: or(list(fc.nat(255).map(String), 4)),
    top_logprobs: or(fc.constant('[]')),
    rank: or(number),
  },
  ['token', 'logprob'],
)
const part = object({
  role: or(fc.constant('"assistant"'), 8),
  content: or(fc.oneof(quoted, nothing)),
  reasoning: or(fc.oneof(quoted, nothing, nothing)),
  reasoning_content: or(nothing, 6),
  refusal: or(nothing),
  tool_calls: or(fc.constantFrom('null', '[]')),
  function_call: or(nothing),
})
const choice = object(
  {
    index: or(fc.constantFrom('0', '0', '0', '1')),
    delta: or(part),
    finish_reason: or(fc.constantFrom('null', '"stop"', '"length"')),
    stop_reason: or(fc.constantFrom('null', 'null', '151645', '"</s>"')),
    token_ids: or(fc.oneof({ weight: 9, arbitrary: list(id, 4) }, { weight: 1, arbitrary: nothing })),
    logprobs: or(fc.oneof(object({ content: or(list(entry, 4)), refusal: nothing }), nothing)),
    routed_experts: or(nothing),
    weight_version: or(nothing),
  },
  ['index', 'delta', 'finish_reason', 'token_ids', 'logprobs'],
  '"weight_versions"',
)
const usually = (text: fc.Arbitrary<string>) => fc.oneof({ weight: 12, arbitrary: text }, fc.constant('{"index":0}'))
/** Counts, now and then under one name, or with something else among them. */
const counted = fc.constantFrom(
  '"prompt_tokens"',
  '"completion_tokens"',
  '"total_tokens"',
  '"cost"',
  '"7"',
  '"__proto__"',
)
const usage = fc
  .array(fc.tuple(counted, or(fc.oneof(fc.nat().map(String), nothing), 20)), { maxLength: 4 })
  .map((members) => `{${members.map((member) => member.join(':')).join(',')}}`)
const chunkOf = (one: fc.Arbitrary<string>) =>
  object(
    {
      id: or(quoted),
      object: quoted,
      created: or(number),
      model: or(quoted),
      choices: fc.oneof(
        { weight: 20, arbitrary: usually(one).map((text) => `[${text}]`) },
        { weight: 1, arbitrary: list(one, 3) },
      ),
      usage: or(
        fc.oneof(fc.constantFrom('null', '{"prompt_tokens":3,"completion_tokens":1,"details":{"cached":null}}'), usage),
      ),
      prompt_token_ids: or(fc.oneof(list(id, 6), nothing)),
      system_fingerprint: or(fc.oneof(quoted, nothing)),
      error: or(nothing),
      weight_version: or(nothing),
    },
    ['id', 'choices'],
  )
const chunk = chunkOf(choice)
const whole = chunkOf(choice.map((text) => text.replace('"delta"', '"message"')))
const spliced = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(
      text,
      fc.nat(),
      fc.nat(2),
      fc.constantFrom('', '"', '\\', ',', ':', '{', '}', '[', ']', '0', '.', 'e', '-', ' ', '\n', 'NaN', '\u0000', 'é'),
    )
    .map(([all, at, cut, put]) => {
      const bytes = Buffer.from(all)
      const place = at % (bytes.length + 1)
      return Buffer.concat([bytes.subarray(0, place), Buffer.from(put), bytes.subarray(place + cut)])
    })
/** Some of them broken at one place, also in the middle of a character. */
const written = (text: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 2, arbitrary: text.map((all) => Buffer.from(all)) }, { weight: 1, arbitrary: spliced(text) })
const views: fc.Arbitrary<ChunkView> = fc.record({ wantsLogprobs: fc.boolean(), wantsUsage: fc.boolean() })

describe('plainChunk', () => {
  it('reads an event as the scan and the parser do, or not at all', () => {
    let plain = 0
    const runs = 6000
    fc.assert(
      fc.property(
        fc.array(written(fc.oneof({ weight: 9, arbitrary: chunk }, whole)), { minLength: 1, maxLength: 3 }),
        views,
        (events, view) => {
          const fast = new Answer(view.wantsLogprobs)
          const slow = new Answer(view.wantsLogprobs)
          for (const payload of events) {
            const bytes = Buffer.concat([Buffer.from('data: '), payload, Buffer.from('\n\n')])
            const before = structuredClone(fast)
            if (!plainChunk.read(bytes, 6, bytes.length - 2, view) || !plainChunk.addTo(fast)) {
              expect(fast).toEqual(before)
              return
            }
            plain += 1
            const facts = scanChunk(payload, view)
            readInto(slow, payload, facts)
            expect(fast).toEqual(slow)
            expect(plainChunk.finishes).toBe(facts.finishes)
            expect([facts.hasError, facts.hasToolCalls, facts.usageOnly]).toEqual([false, false, false])
            const visible = applyEdits(bytes, plainChunk.edits()).subarray(6, -2)
            expect(visible.equals(applyEdits(payload, facts.edits))).toBe(true)
          }
        },
      ),
      { numRuns: runs, seed },
    )
    // A reader that refuses everything would be right too.
    expect(plain).toBeGreaterThan(runs / 5)
  })

  it('reads a whole completion as the scan and the parser do', () => {
    let plain = 0
    const runs = 3000
    const view = { wantsLogprobs: false, wantsUsage: true }
    fc.assert(
      fc.property(written(whole), (body) => {
        const fast = new Answer(false)
        if (!plainChunk.read(body, 0, body.length, view) || !plainChunk.addWholeTo(fast)) return
        plain += 1
        const edits = plainChunk.edits()
        const slow = new Answer(false)
        // A member that only a parser knows, so that it is not read in the plain way.
        const at = body.lastIndexOf(0x7d)
        const odd = Buffer.concat([body.subarray(0, at), Buffer.from(',"odd":[1]'), body.subarray(at)])
        const parsed = readWholeReply(odd, slow, view)
        expect(parsed.edits?.length).toBe(edits.length)
        const [turn, expected] = [fast, slow].map(({ choices }) => choices.map(answeredTurn))
        expect(turn).toEqual(expected)
        expect(fast).toEqual(slow)
        const visible = applyEdits(body, edits).toString('latin1')
        expect(
          applyEdits(odd, parsed.edits ?? [])
            .toString('latin1')
            .replace(',"odd":[1]', ''),
        ).toBe(visible)
      }),
      { numRuns: runs, seed },
    )
    expect(plain).toBeGreaterThan(runs / 8)
  })

  it('reads what vLLM sends', () => {
    const bytes = Buffer.from(
      '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"\\n"},' +
        '"logprobs":{"content":[{"token":"\\n","logprob":-0.0006933808326721191,"bytes":[10],"top_logprobs":[]}]},' +
        '"finish_reason":null,"token_ids":[198]}],"prompt_token_ids":null}',
    )
    const answer = new Answer(false)
    expect(plainChunk.read(bytes, 0, bytes.length, { wantsLogprobs: false, wantsUsage: false })).toBe(true)
    expect(plainChunk.addTo(answer)).toBe(true)
    expect(answer.choices[0]).toMatchObject({
      content: '\n',
      tokenIds: [198],
      tokenTexts: ['\n'],
      logprobs: [-0.0006933808326721191],
    })
  })
})

describe('readWholeReply', () => {
  it('gives each choice its own message where they come out of order', () => {
    const answer = new Answer(false)
    const said = (index: number) => ({ index, message: { role: 'assistant', content: `choice ${index}` } })
    readWholeReply(Buffer.from(JSON.stringify({ choices: [said(1), said(0)] })), answer, {
      wantsLogprobs: false,
      wantsUsage: true,
    })
    expect(answer.choices.map((choice) => choice.rawMessage)).toEqual(
      [said(0), said(1)].map(({ message }) => JSON.stringify(message)),
    )
  })
})
