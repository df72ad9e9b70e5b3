import { type Digest, sha256 } from '../../core/index.ts'
import type { LooseObject } from '../session/sampling.ts'
import { tryEngine } from './http.ts'

/** Words, scripts, digits, blanks, JSON and marks of control tokens: two tokenizers that agree on it agree. */
export const specimen =
  'The quick brown fox, naïve façade: 漢字かな 한국어 Ünïcödé → 🙂👩‍🚀\r\n\t  x+=1234567890; {"a": 1.0, "b": [null, true]} ' +
  'def f(x):\n        return x ** 2\n<|im_start|>user <|im_end|><think></think><|eot_id|></s>[INST] <tool_call>'

const conversation: readonly LooseObject[] = [
  { role: 'system', content: 'S.' },
  { role: 'user', content: 'U.' },
  { role: 'assistant', content: 'A.' },
  { role: 'user', content: 'V.' },
]

const tool: LooseObject = {
  type: 'function',
  function: { name: 'f', description: 'F.', parameters: { type: 'object', properties: { a: { type: 'string' } } } },
}

/**
 * Digests of a tokenizer and a chat template by what they do, through `POST /tokenize` (vLLM, SGLang): the files behind
 * them are out of reach, and two servers with equal digests give equal ids. Null where the route is missing or refuses.
 */
export async function tokenIdentity(
  root: string,
  apiKey: string | null,
): Promise<{ readonly tokenizer: Digest | null; readonly chatTemplate: Digest | null }> {
  const digest = async (body: LooseObject): Promise<Digest | null> => {
    const answer = await tryEngine(root, '/tokenize', apiKey, body)
    const ids = answer.status < 400 ? (answer.body?.['tokens'] ?? null) : null
    return Array.isArray(ids) && ids.length > 0 ? sha256(ids.join()) : null
  }
  const [tokenizer, chatTemplate] = await Promise.all([
    digest({ prompt: specimen, add_special_tokens: false }),
    digest({ messages: conversation, tools: [tool] }),
  ])
  return { tokenizer, chatTemplate }
}
