/**
 * Trains the byte-level BPE vocabularies in `engine/tokenizers/`. Deterministic for a given set of installed packages;
 * the digest of the training text is kept next to the vocabularies. Run: `node engine/scripts/train-vocab.ts`.
 *
 * The pre-tokeniser pattern of `chatml` is the one published with the Qwen2/Qwen2.5 tokenizers (tokenizer.json,
 * `pre_tokenizer.pretokenizers[0].pattern`), that of `llama` the one of Llama 3 (digits in groups of three).
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { byteToUnicode } from '../src/tokenizer/byte-level.ts'
import { generatedTexts, packageTexts } from './corpus.ts'
import { trainMerges } from './bpe-trainer.ts'

interface VocabularyPlan {
  readonly file: string
  readonly merges: number
  readonly pattern: string
  /** Control tokens: hidden when text is shown (`special` in tokenizer.json). */
  readonly special: readonly string[]
  /** Single tokens that do show in text, as Qwen3 has them for thinking and tool tags. */
  readonly visible: readonly string[]
  /** Placeholders of media, hidden; behind the others, so that ids of older vocabularies stay. */
  readonly media: readonly string[]
}

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
const REST = ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+'

const PLANS: readonly VocabularyPlan[] = [
  {
    file: 'chatml.json',
    merges: 8000,
    pattern: `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|${REST}`,
    special: ['<|endoftext|>', '<|im_start|>', '<|im_end|>'],
    visible: ['<think>', '</think>', '<tool_call>', '</tool_call>', '<tool_response>', '</tool_response>'],
    media: ['<|vision_start|>', '<|vision_end|>', '<|image_pad|>'],
  },
  {
    file: 'llama.json',
    merges: 6000,
    pattern: `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|${REST}`,
    special: [
      '<|begin_of_text|>',
      '<|end_of_text|>',
      '<|start_header_id|>',
      '<|end_header_id|>',
      '<|eom_id|>',
      '<|eot_id|>',
      '<|python_tag|>',
    ],
    visible: [],
    media: [],
  },
]

const nodeModules = fileURLToPath(new URL('../../node_modules', import.meta.url))
const outDir = fileURLToPath(new URL('../tokenizers', import.meta.url))
const texts = [...packageTexts(nodeModules, 2_000_000), ...generatedTexts(3000, 20_261_120)]
const digest = createHash('sha256').update(texts.join('\u0000')).digest('hex')

for (const plan of PLANS) {
  const started = performance.now()
  const merges = trainMerges(texts, new RegExp(plan.pattern, 'gu'), plan.merges)
  // A Map, because tokens such as `constructor` are names that a plain object has already.
  const vocab = new Map<string, number>()
  for (const char of [...byteToUnicode()].toSorted()) vocab.set(char, vocab.size)
  for (const [left, right] of merges) if (!vocab.has(left + right)) vocab.set(left + right, vocab.size)
  const base = vocab.size
  const added = [...plan.special, ...plan.visible, ...plan.media].map((content, index) => ({
    id: base + index,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: index < plan.special.length || plan.media.includes(content),
  }))
  const tokenizer = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: plan.pattern }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: '',
      end_of_word_suffix: '',
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(vocab),
      merges: merges.map(([left, right]) => `${left} ${right}`),
    },
  }
  writeFileSync(`${outDir}/${plan.file}`, `${JSON.stringify(tokenizer)}\n`)
  console.log(`${plan.file}: ${base + added.length} tokens, ${((performance.now() - started) / 1000).toFixed(1)} s`)
}
writeFileSync(
  `${outDir}/training.json`,
  `${JSON.stringify({ textSha256: digest, texts: texts.length, characters: texts.reduce((sum, text) => sum + text.length, 0) })}\n`,
)
