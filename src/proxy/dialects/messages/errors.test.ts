import { expect, it } from 'vitest'
import { messagesRefusal } from './errors.ts'

const tooLong = (tokens: number) => `prompt is too long: ${tokens} tokens > 4096 maximum`
const askLess = expect.stringMatching(/^input length and `max_tokens` exceed context limit: 3000 \+ 2000 > 4096, /)

// Sentences of vLLM 0.10, 0.11, 0.32 and SGLang 0.5.
it.each([
  [
    "You passed 5000 input tokens and requested 10 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4086 tokens.",
    tooLong(5000),
  ],
  [
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.",
    askLess,
  ],
  [
    "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 3000 input tokens (2000 > 4096 - 3000).",
    askLess,
  ],
  [
    "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 3000 tokens from the input messages and 2000 tokens for the completion.",
    askLess,
  ],
  ["The input (5000 tokens) is longer than the model's context length (4096 tokens).", tooLong(5000)],
  [
    'max_tokens=8000 cannot be greater than max_model_len=4096. Please request fewer output tokens.',
    'max_tokens: 8000 > 4096, which is the maximum allowed number of output tokens',
  ],
  ['The prompt exceeds the context window.', 'prompt is too long: The prompt exceeds the context window.'],
])('an overflow as an engine says it: %s', (said, told) => {
  const refusal = messagesRefusal(400, Buffer.from(JSON.stringify({ error: { message: said } })), null, 'id')
  expect(JSON.parse(refusal.wire.body.toString()).error).toEqual({ type: 'invalid_request_error', message: told })
  expect(refusal.code).toBe('CONTEXT_OVERFLOW')
})
