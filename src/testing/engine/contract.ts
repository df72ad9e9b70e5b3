/** The suite that every engine adapter must pass, against whatever stands behind it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createProxy, type EngineAdapter, type Listener, type Proxy } from '../../proxy/index.ts'
import { openStore, type SessionLog, type Store, type TokenStrategy } from '../../trajectory/index.ts'

/** An adapter and the server behind it. */
export interface EngineUnderTest extends AsyncDisposable {
  readonly adapter: EngineAdapter
  readonly model: string
}

/** What can be asked of the server. */
export interface EngineContractOptions {
  readonly start: () => Promise<EngineUnderTest>
  /** It gives token ids; else it must be recorded as text, with findings. */
  readonly givesIds: boolean
  /** It has token routes: `splice` must extend. */
  readonly splices: boolean
  /** Its model's template takes tools. Default true. */
  readonly takesTools?: boolean
  /** It gives several choices to one request, each with its ids. Default true. */
  readonly severalChoices?: boolean
  /** It generates up to its context where more is asked for, and refuses nothing. */
  readonly cutsAtContext?: boolean
  /** Some tokens come without a logprob, which is a finding. Default: none does. */
  readonly missesLogprobs?: boolean
  /** It answers any request (false: a fixture that knows two answers). */
  readonly alive: boolean
  /** Ids that it must have given, where they are known beforehand. */
  readonly expected?: {
    readonly promptIds: readonly number[]
    readonly text: readonly number[]
    readonly call: readonly number[]
  }
}

/** A server that can hold a model to a schema only does so where `strict` asks for it (vLLM 0.32.0). */
const shell = {
  type: 'function' as const,
  function: {
    name: 'shell',
    description: 'Run a shell command.',
    strict: true,
    parameters: {
      type: 'object',
      properties: { command: { type: 'string', enum: ['ls', 'pwd'] } },
      required: ['command'],
      additionalProperties: false,
    },
  },
}

/** Declares the suite for one adapter inside a vitest file. */
export function engineContract(name: string, given: EngineContractOptions): void {
  describe(`engineContract: ${name}`, () => {
    let directory: string
    let engine: EngineUnderTest
    let store: Store
    let proxy: Proxy
    let listener: Listener
    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'paddock-engine-'))
      engine = await given.start()
      store = await openStore(directory)
      proxy = createProxy({ recorder: store.recorder, engine: engine.adapter })
      listener = await proxy.listen({})
    })
    afterAll(async () => {
      await proxy.close()
      await store.close()
      await engine[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    })

    const open = async (strategy: TokenStrategy | 'auto' = 'record') => {
      const { session, key, baseUrl } = await proxy.openSession({ policy: { strategy } })
      const client = new OpenAI({ apiKey: key, baseURL: baseUrl(listener.origin), maxRetries: 0 })
      return { client, log: () => store.recorder.session(session.id) }
    }
    const messages = [{ role: 'user' as const, content: 'Say hello.' }]

    it('says who it is, the same twice', async () => {
      const one = await engine.adapter.fingerprint()
      expect(one).toEqual(await engine.adapter.fingerprint())
      expect(one).toMatchObject({ engine: engine.adapter.name, model: engine.model })
      expect(one.logprobKind).toBe(engine.adapter.logprobKind)
    })

    it.each([false, true])('words, streamed: %s', async (stream) => {
      const { client, log } = await open()
      const answer = await ask(client, { model: engine.model, messages, max_tokens: 64, stream })
      expect(answer.content.length).toBeGreaterThan(0)
      expect(answer.finish).toMatch(/^(stop|length)$/)
      expectTokens(await log(), given, 'text')
      expect(answer.usage?.completion_tokens).toBe((await log()).calls[0]?.commit?.choices[0]?.claimedTokens)
    })

    it.skipIf(given.takesTools === false).each([false, true])('a tool call, streamed: %s', async (stream) => {
      const { client, log } = await open()
      const body = {
        model: engine.model,
        messages,
        tools: [shell],
        tool_choice: 'required' as const,
        max_tokens: 256,
        stream,
      }
      const answer = await ask(client, body)
      // A model may ask for more than one; each of the server's calls is told, and the first is whole.
      expect(answer.calls.length).toBeGreaterThanOrEqual(1)
      expect(answer.calls[0]).toMatchObject({ id: expect.stringMatching(/./), name: 'shell' })
      expect(JSON.parse(answer.calls[0]?.arguments ?? '')).toMatchObject({ command: expect.any(String) })
      expectTokens(await log(), given, 'call')
    })

    it('hides from the client what it did not ask for', async () => {
      const { client } = await open()
      const answer = await client.chat.completions.create({ model: engine.model, messages, max_tokens: 16 })
      expect(JSON.stringify(answer)).not.toMatch(/token_ids|meta_info|sglext|"logprobs":\{/)
    })

    if (given.givesIds)
      it('counts a prompt as it renders it', async () => {
        const { client, log } = await open()
        await client.chat.completions.create({ model: engine.model, messages, max_tokens: 16 })
        const prompt = (await log()).segments.find(({ origin }) => origin === 'prompt')
        const count = (await engine.adapter.promptIds?.(Buffer.from(JSON.stringify({ model: engine.model, messages }))))
          ?.length
        expect(count).toBe(prompt?.tokens.length)
      })

    if (given.alive)
      it('ends at the bound that was asked for, with as many ids', async () => {
        const { client, log } = await open()
        const answer = await ask(client, { model: engine.model, messages, max_tokens: 1 })
        expect(answer.finish).toBe('length')
        if (given.givesIds) expect(sampledOf(await log())[0]?.tokens).toHaveLength(1)
      })

    if (given.alive && given.givesIds && given.severalChoices !== false)
      it('gives each of several choices its own ids', async () => {
        const { client, log } = await open()
        await client.chat.completions.create({ model: engine.model, messages, max_tokens: 16, n: 2 })
        const sampled = sampledOf(await log())
        expect(sampled.map(({ choice }) => choice)).toEqual([0, 1])
        expect(sampled.every(({ tokens, logprobs }) => tokens.length > 0 && logprobs?.length === tokens.length)).toBe(
          true,
        )
      })

    if (given.alive && given.givesIds && given.cutsAtContext !== true)
      it('refuses what does not fit into its context, as an overflow', async () => {
        const { client } = await open()
        const asked = client.chat.completions.create({ model: engine.model, messages, max_tokens: 50_000_000 })
        await expect(asked).rejects.toMatchObject({ status: 400, code: 'context_length_exceeded' })
      })

    if (given.splices)
      it('extends a conversation token for token, streamed and not', async () => {
        const { client, log } = await open('auto')
        const history: OpenAI.ChatCompletionMessageParam[] = [...messages]
        for (const stream of [false, true, false]) {
          const { content } = await ask(client, { model: engine.model, messages: history, max_tokens: 64, stream })
          history.push({ role: 'assistant', content }, { role: 'user', content: 'And again.' })
        }
        const told = await log()
        expect(told.calls.map(({ intent }) => intent.strategy)).toEqual(['splice', 'splice', 'splice'])
        expect(told.calls.flatMap(({ commit }) => commit?.forks.map(({ cause }) => cause) ?? [])).toEqual([])
        expect(unexpected(told, given)).toEqual([])
        const sampled = sampledOf(told)
        const prompts = told.segments.filter(({ origin }) => origin === 'prompt')
        // Each further prompt hangs behind the answer before it.
        expect(prompts.slice(1).map(({ parent }) => parent?.segmentId)).toEqual(
          sampled.slice(0, -1).map(({ id }) => id),
        )
      })

    if (!given.givesIds)
      it('is not spliced', async () => {
        await expect(open('splice')).rejects.toMatchObject({ code: 'ENGINE_INCAPABLE' })
      })
  })
}

const sampledOf = (log: SessionLog) => log.segments.filter(({ origin, stopCut }) => origin === 'sampled' && !stopCut)

function unexpected({ calls }: SessionLog, { missesLogprobs }: EngineContractOptions): readonly string[] {
  const findings = calls.flatMap(({ commit }) => commit?.findings ?? [])
  return findings.filter((finding) => missesLogprobs !== true || finding !== 'absent_logprob')
}

function expectTokens(log: SessionLog, given: EngineContractOptions, kind: 'text' | 'call'): void {
  const [call] = log.calls
  if (!given.givesIds) {
    expect(call?.commit?.findings).toContain('missing_ids')
    expect(sampledOf(log)).toEqual([])
    return
  }
  expect(unexpected(log, given)).toEqual([])
  const prompt = log.segments.find(({ origin }) => origin === 'prompt')
  const [sampled] = sampledOf(log)
  expect(prompt?.tokens.length).toBe(call?.commit?.claimedPromptTokens)
  expect(sampled?.tokens.length).toBeGreaterThan(0)
  expect(sampled?.logprobs?.length).toBe(sampled?.tokens.length)
  const missing = (logprob: number) => given.missesLogprobs === true && Number.isNaN(logprob)
  const known = [...(sampled?.logprobs ?? [])].filter((logprob) => !missing(logprob))
  expect(known.every((logprob) => Number.isFinite(logprob) && logprob < 1e-3)).toBe(true)
  if (given.expected === undefined) return
  expect([...(prompt?.tokens ?? [])]).toEqual(given.expected.promptIds)
  expect([...(sampled?.tokens ?? [])]).toEqual(given.expected[kind])
}

interface Told {
  readonly content: string
  readonly finish: string | null
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[]
  readonly usage: { readonly completion_tokens: number } | null
}

/** One answer through the official SDK, streamed or not. */
async function ask(
  client: OpenAI,
  body: Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'stream'> & { readonly stream?: boolean },
): Promise<Told> {
  if (body.stream !== true) {
    const answer = await client.chat.completions.create({ ...body, stream: false })
    const [choice] = answer.choices
    return {
      content: choice?.message.content ?? '',
      finish: choice?.finish_reason ?? null,
      calls: (choice?.message.tool_calls ?? []).flatMap((one) =>
        one.type === 'function' ? [{ id: one.id, name: one.function.name, arguments: one.function.arguments }] : [],
      ),
      usage: answer.usage ?? null,
    }
  }
  const stream = await client.chat.completions.create({
    ...body,
    stream: true,
    stream_options: { include_usage: true },
  })
  let content = ''
  let finish: string | null = null
  let usage: Told['usage'] = null
  const calls: { id: string; name: string; arguments: string }[] = []
  for await (const chunk of stream) {
    if (chunk.usage) usage = chunk.usage
    const [choice] = chunk.choices
    content += choice?.delta.content ?? ''
    finish = choice?.finish_reason ?? finish
    for (const part of choice?.delta.tool_calls ?? []) {
      const call = (calls[part.index] ??= { id: '', name: '', arguments: '' })
      call.id ||= part.id ?? ''
      call.name ||= part.function?.name ?? ''
      call.arguments += part.function?.arguments ?? ''
    }
  }
  return { content, finish, calls, usage }
}
