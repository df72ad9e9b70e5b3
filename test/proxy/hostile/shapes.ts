/** Answers of engines that do not tell the truth: what is wrong, what must be found, and what was sampled. */

/** A number or anything else as it stands in the JSON text. */
export const raw = (text: string): string => `<<${text}>>`

/** JSON text in which {@link raw} values stand as they are. */
export const json = (value: unknown): string => JSON.stringify(value).replace(/"<<(.*?)>>"/g, '$1')

/** Parsed JSON of a wire. */
// oxlint-disable-next-line typescript/no-explicit-any -- a hostile answer has no shape
export type Json = any

/** What an engine says in the order in which it says it: a whole body, or the payloads of a stream. */
export interface Answer {
  whole: Json
  events: Json[]
}

export interface Shape {
  readonly name: string
  /** Changes an honest answer of three tokens; a text takes the place of the whole reply. */
  readonly spoils: (answer: Answer) => Answer | void
  /** Findings that must be among the call's; none: an honest answer. */
  readonly finds: readonly string[]
  /** Tokens that it tells or counts as sampled. Default 3. */
  readonly sampled?: number
  /** Of them trained. Default 0, and 3 for an honest answer. */
  readonly trained?: number
  /** Only as a stream, or only whole. */
  readonly only?: 'stream' | 'whole'
  /** Puts a payload into an event otherwise than as one line of data. */
  readonly frames?: (payload: string) => string
}

/** Of the vocabulary that the hostile engine tells. */
export const vocabulary = 50_000

const entry = (token: string, logprob: unknown = -0.5) => ({ token, logprob, bytes: null, top_logprobs: [] })

export function honest(): Answer {
  const head = { id: 'chatcmpl-1', created: 1, model: 'm' }
  const chunk = (choice: object, more: object = {}) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null, ...choice }],
    ...more,
  })
  const told = (content: string, ids: number[]) =>
    chunk({
      delta: { content },
      token_ids: ids,
      logprobs: { content: ids.map(() => entry('a')) },
    })
  const usage = { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 }
  return {
    whole: {
      ...head,
      object: 'chat.completion',
      prompt_token_ids: [1, 2, 3, 4],
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'aaa' },
          token_ids: [10, 11, 12],
          logprobs: { content: [entry('a'), entry('a'), entry('a')] },
          finish_reason: 'stop',
        },
      ],
      usage,
    },
    events: [
      chunk({ delta: { role: 'assistant', content: '' } }, { prompt_token_ids: [1, 2, 3, 4] }),
      told('aa', [10, 11]),
      told('a', [12]),
      chunk({ finish_reason: 'stop' }),
      { ...head, object: 'chat.completion.chunk', choices: [], usage },
    ],
  }
}

/** The choice of each piece that has one. */
const choices = ({ whole, events }: Answer): Json[] =>
  [whole, ...events].flatMap((piece) => (piece.choices as Json[]).slice(0, 1))

const withIds = (answer: Answer): Json[] => choices(answer).filter((choice) => Array.isArray(choice.token_ids))

/** Another last id. */
const id = (value: unknown) => (answer: Answer) => {
  for (const choice of withIds(answer)) choice.token_ids[choice.token_ids.length - 1] = value
}

const ids = (change: (list: Json[]) => unknown) => (answer: Answer) => {
  const [whole, ...pieces] = withIds(answer)
  for (const choice of [whole, pieces.at(-1)]) choice.token_ids = change(choice.token_ids)
}

const prompt = (value: unknown) => (answer: Answer) => {
  answer.whole.prompt_token_ids = value
  answer.events[0].prompt_token_ids = value
}

/** Another last logprob. */
const logprob = (value: unknown) => (answer: Answer) => {
  const [whole, ...pieces] = withIds(answer)
  for (const choice of [whole, pieces.at(-1)]) choice.logprobs.content.at(-1).logprob = value
}

const entries = (change: (list: Json[]) => unknown) => (answer: Answer) => {
  const [whole, ...pieces] = withIds(answer)
  for (const choice of [whole, pieces.at(-1)]) choice.logprobs.content = change(choice.logprobs.content)
}

const index = (value: unknown) => (answer: Answer) => {
  for (const choice of choices(answer)) {
    if (value === undefined) delete choice.index
    else choice.index = value
  }
}

const usage = (change: object) => (answer: Answer) => {
  Object.assign(answer.whole.usage, change)
  Object.assign(answer.events.at(-1).usage, change)
}

const late =
  (choice: object) =>
  ({ events }: Answer) => {
    const finish = events.at(-2)
    events.splice(-1, 0, { ...finish, choices: [{ ...finish.choices[0], finish_reason: null, ...choice }] })
  }

const invalid = ['invalid_ids']
const noPrompt = ['missing_prompt_ids']
const badPrompt = ['invalid_prompt_ids']

export const chatShapes: readonly Shape[] = [
  { name: 'nothing', spoils: () => undefined, finds: [] },
  { name: 'a choice without a number', spoils: index(undefined), finds: [] },
  { name: 'an id of 2^32', spoils: id(4_294_967_296), finds: invalid },
  { name: 'an id of 2^31', spoils: id(2_147_483_648), finds: invalid },
  { name: 'an id with a fraction', spoils: id(1.5), finds: invalid },
  { name: 'an id as a string', spoils: id('10'), finds: invalid },
  { name: 'a negative id', spoils: id(-1), finds: invalid },
  { name: 'an id outside the vocabulary', spoils: id(vocabulary), finds: invalid },
  { name: 'an id of null', spoils: id(null), finds: invalid },
  { name: 'an id of true', spoils: id(true), finds: invalid },
  { name: 'an infinite id', spoils: id(raw('1e400')), finds: invalid },
  { name: 'a list for an id', spoils: id([12]), finds: invalid },
  { name: 'an object for an id', spoils: id({ id: 12 }), finds: invalid },
  { name: 'an id too few', spoils: ids((list) => list.slice(1)), finds: ['count_mismatch'] },
  { name: 'an id too many', spoils: ids((list) => [...list, 13]), finds: ['count_mismatch'], sampled: 4 },
  { name: 'a text for the ids', spoils: ids(String), finds: ['count_mismatch'], only: 'stream' },
  { name: 'a text for all ids', spoils: ids(String), finds: ['missing_ids'], only: 'whole' },
  { name: 'no prompt ids', spoils: prompt(undefined), finds: noPrompt },
  { name: 'null prompt ids', spoils: prompt(null), finds: noPrompt },
  { name: 'empty prompt ids', spoils: prompt([]), finds: noPrompt },
  { name: 'a text for the prompt ids', spoils: prompt('1,2,3,4'), finds: noPrompt },
  { name: 'an object for the prompt ids', spoils: prompt({ ids: [1, 2, 3, 4] }), finds: noPrompt },
  { name: 'a prompt id of 2^32', spoils: prompt([1, 2, 3, 4_294_967_296]), finds: badPrompt },
  { name: 'a prompt id with a fraction', spoils: prompt([1, 2, 3, 1.5]), finds: badPrompt },
  { name: 'a negative prompt id', spoils: prompt([1, 2, 3, -4]), finds: badPrompt },
  { name: 'a prompt id as a string', spoils: prompt([1, 2, 3, '4']), finds: badPrompt },
  { name: 'a prompt id of null', spoils: prompt([1, 2, 3, null]), finds: badPrompt },
  { name: 'a prompt id outside the vocabulary', spoils: prompt([1, 2, 3, vocabulary]), finds: badPrompt },
  { name: 'a prompt id in two pieces', spoils: prompt(raw('[1,2,3,4 5]')), finds: badPrompt },
  { name: 'a prompt id with a leading zero', spoils: prompt(raw('[1,2,3,04]')), finds: badPrompt },
  { name: 'another count of prompt ids', spoils: prompt([1, 2, 3]), finds: ['prompt_mismatch'] },
  {
    name: 'another prompt later',
    spoils: ({ events }) => void (events[2].prompt_token_ids = [1, 2, 3, 5]),
    finds: ['changed_prompt_ids'],
    only: 'stream',
  },
  { name: 'a positive logprob', spoils: logprob(3.5), finds: ['positive_logprob'] },
  { name: 'an infinite logprob', spoils: logprob(raw('1e400')), finds: ['positive_logprob'] },
  { name: 'a logprob of minus infinity', spoils: logprob(raw('-1e400')), finds: ['infinite_logprob'], trained: 0 },
  { name: 'a logprob beyond float32', spoils: logprob(raw('-1e39')), finds: ['infinite_logprob'], trained: 0 },
  { name: 'a bare NaN', spoils: logprob(raw('NaN')), finds: ['nan_logprob'], trained: 0 },
  { name: 'a bare -Infinity', spoils: logprob(raw('-Infinity')), finds: ['nan_logprob'], trained: 0 },
  { name: 'a logprob of null', spoils: logprob(null), finds: ['nan_logprob'], trained: 0 },
  { name: 'a logprob as a string', spoils: logprob('-0.5'), finds: ['nan_logprob'], trained: 0 },
  { name: 'a logprob too few', spoils: entries((list) => list.slice(1)), finds: ['logprob_count_mismatch'] },
  {
    name: 'a logprob too many',
    spoils: entries((list) => [...list, entry('b')]),
    finds: ['logprob_count_mismatch'],
  },
  {
    name: 'logprobs that are shifted by a piece',
    spoils: ({ events }) =>
      void events[2].choices[0].logprobs.content.push(events[1].choices[0].logprobs.content.pop()),
    finds: ['logprob_count_mismatch'],
    only: 'stream',
  },
  {
    name: 'logprobs of other tokens',
    spoils: entries((list) => list.map((one) => ({ ...one, token: 'token_id:13' }))),
    finds: ['logprob_count_mismatch'],
  },
  {
    name: 'no logprobs',
    spoils: (answer) => {
      for (const choice of withIds(answer)) choice.logprobs = null
    },
    finds: ['missing_logprobs'],
  },
  { name: 'a choice that was not asked for', spoils: index(1), finds: ['invalid_choice'] },
  { name: 'a negative number of a choice', spoils: index(-1), finds: ['invalid_choice'] },
  { name: 'a number of a choice as a string', spoils: index('0'), finds: ['invalid_choice'] },
  { name: 'a number of a choice with a fraction', spoils: index(0.5), finds: ['invalid_choice'] },
  { name: 'an infinite number of a choice', spoils: index(raw('1e400')), finds: ['invalid_choice'] },
  {
    name: 'two choices of one number',
    spoils: ({ whole, events }) => {
      whole.choices.push({ ...whole.choices[0], token_ids: [20, 21, 22] })
      events[1].choices.push({ ...events[1].choices[0], token_ids: [20, 21] })
    },
    finds: ['duplicate_choice'],
    sampled: 6,
    only: 'whole',
  },
  {
    name: 'two choices of one number in a piece',
    spoils: ({ events }) => void events[1].choices.push({ ...events[1].choices[0], token_ids: [20, 21] }),
    finds: ['duplicate_choice'],
    sampled: 5,
    only: 'stream',
  },
  {
    name: 'another id of the answer later',
    spoils: ({ events }) => void (events[2].id = 'chatcmpl-2'),
    finds: ['changed_answer'],
    only: 'stream',
  },
  {
    name: 'another model later',
    spoils: ({ events }) => void (events[2].model = 'm2'),
    finds: ['changed_answer'],
    only: 'stream',
  },
  {
    name: 'words behind the end',
    spoils: late({ delta: { content: 'b' } }),
    finds: ['content_after_finish'],
    only: 'stream',
  },
  {
    name: 'ids behind the end',
    spoils: late({ token_ids: [13] }),
    finds: ['content_after_finish'],
    sampled: 4,
    only: 'stream',
  },
  { name: 'another end', spoils: late({ finish_reason: 'length' }), finds: ['content_after_finish'], only: 'stream' },
  {
    name: 'a tool call behind the end',
    spoils: late({ delta: { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f' } }] } }),
    finds: ['content_after_finish'],
    only: 'stream',
  },
  ...[1, 300_000_000, 4_294_967_294, -1, 0.5, raw('1e300')].map((number): Shape => ({
    name: `tools numbered from ${number}`,
    spoils: ({ events }) => {
      const call = (index: unknown, fn: object) => ({ index, id: 'c', type: 'function', function: fn })
      events[1].choices[0].delta = { tool_calls: [call(number, { name: 'f', arguments: '{"a"' })] }
      events[2].choices[0].delta = { tool_calls: [call(number, { arguments: ':1}' })] }
    },
    finds: [],
    only: 'stream',
  })),
  ...Object.entries({
    'a name': (payload: string) => `event: message\ndata: ${payload}\n\n`,
    'a comment': (payload: string) => `: still there\ndata: ${payload}\n\n`,
    'a number behind': (payload: string) => `data: ${payload}\nid: 7\n\n`,
    'several lines': (payload: string) => `data: ${payload.replace(',', ',\ndata: ')}\n\n`,
  }).map(([name, frames]): Shape => ({
    name: `events with ${name}`,
    frames,
    spoils: () => undefined,
    finds: [],
    only: 'stream',
  })),
  { name: 'a count below zero', spoils: usage({ completion_tokens: -1 }), finds: ['invalid_usage'] },
  { name: 'a count with a fraction', spoils: usage({ completion_tokens: 3.5 }), finds: ['invalid_usage'] },
  { name: 'a count as a string', spoils: usage({ completion_tokens: '3' }), finds: ['invalid_usage'] },
  { name: 'an infinite count', spoils: usage({ completion_tokens: raw('1e400') }), finds: ['invalid_usage'] },
  { name: 'a higher count', spoils: usage({ completion_tokens: 9 }), finds: ['count_mismatch'], sampled: 9 },
  { name: 'a lower count', spoils: usage({ completion_tokens: 2 }), finds: ['count_mismatch'] },
]

const message = 'CUDA out of memory'

/** Errors in a stream that began well, and that ends as if nothing had been. */
export const errorShapes: readonly Shape[] = Object.entries({
  'an error as an object': (events: Json[]) => events.splice(3, 2, { error: { message, type: 'server_error' } }),
  'an error as a text': (events: Json[]) => events.splice(3, 2, { error: message }),
  'an error as a piece': (events: Json[]) => events.splice(3, 2, { object: 'error', message, code: 500 }),
  'an error beside choices': (events: Json[]) => Object.assign(events[3], { error: message }),
}).map(([name, spoil]) => ({ name, spoils: ({ events }) => void spoil(events), finds: [], only: 'stream' }))

/** Answers that have tests of their own. */
export const otherShapes: readonly Shape[] = [
  ...(['ids', 'logprobs'] as const).flatMap((what): Shape[] => {
    const lack = (choice: Json) => {
      if (what === 'ids') delete choice.token_ids
      else choice.logprobs = null
    }
    return [
      {
        name: `a stream without ${what}`,
        spoils: ({ events }) => withIds({ whole: { choices: [] }, events }).forEach(lack),
        finds: [],
      },
      { name: `an answer without ${what}`, spoils: (answer) => withIds(answer).forEach(lack), finds: [] },
    ]
  }),
  // The ids spell more than the text shows, and no member says why.
  ...(['abc', 'abcEND', 'abcENDqr'] as const).map((text): Shape => {
    return {
      name: `the text ${text}`,
      only: 'whole',
      spoils: ({ whole }) => {
        const [choice] = whole.choices
        choice.message.content = text
        const texts = 'abcENDqr'.split('')
        choice.token_ids = texts.map((_, at) => 10 + at)
        choice.logprobs.content = texts.map((token) => entry(token))
        whole.usage = { prompt_tokens: 4, completion_tokens: 8, total_tokens: 12 }
      },
      finds: [],
    }
  }),
  {
    name: 'two samples as one',
    spoils: (answer) => {
      const { events } = answer
      const [, one, two, end] = events
      events.splice(3, 1, one, two, end, end)
      usage({ completion_tokens: 6 })(answer)
    },
    finds: [],
  },
  {
    name: 'an error for an end',
    spoils: (answer) => {
      for (const choice of choices(answer)) if (choice.finish_reason === 'stop') choice.finish_reason = 'error'
    },
    finds: [],
  },
]
