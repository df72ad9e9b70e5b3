import { fileURLToPath } from 'node:url'
import { ChatTemplate } from './chat/template.ts'
import { Vocabulary } from './tokenizer/tokenizer.ts'
import type { TurnGrammar } from './chat/prompt-view.ts'
import type { CallTags } from './parsers/tagged-calls.ts'

/** A served model: vocabulary, template, parsers and the facts of the server it stands for. */
export interface Profile {
  readonly model: string
  readonly vocabulary: Vocabulary
  readonly template: ChatTemplate
  readonly grammar: TurnGrammar
  readonly callTags: CallTags
  /** The key that holds arguments in a call as this family writes it. */
  readonly argumentsKey: 'arguments' | 'parameters'
  readonly separator: string
  /** Whether the vocabulary has a placeholder for images. */
  readonly takesImages: boolean
  /** Whether the family thinks aloud between `<think>` tags. */
  readonly thinks: boolean
  /** Ends an answer that calls tools, and one that does not. */
  readonly terminator: { readonly afterCall: number; readonly afterText: number }
  /** Names as vLLM would be started with; shown by `/server_info` and part of an engine fingerprint. */
  readonly parsers: { readonly tool: string; readonly reasoning: string | null }
}

const CHATML: TurnGrammar = {
  startToken: '<|im_start|>',
  headerEnd: { newline: true },
  terminators: ['<|im_end|>', '<|endoftext|>'],
  toolRoles: ['tool'],
}
const LLAMA: TurnGrammar = {
  startToken: '<|start_header_id|>',
  headerEnd: { token: '<|end_header_id|>' },
  terminators: ['<|eot_id|>', '<|eom_id|>', '<|end_of_text|>'],
  toolRoles: ['ipython', 'tool'],
}

interface Recipe {
  readonly vocabulary: 'chatml' | 'llama'
  readonly template: string
  readonly settings?: Readonly<Record<string, unknown>>
  readonly thinks: boolean
}

const RECIPES: Readonly<Record<string, Recipe>> = {
  'scripted-hermes': { vocabulary: 'chatml', template: 'hermes', thinks: true },
  'scripted-qwen': { vocabulary: 'chatml', template: 'qwen', thinks: false },
  'scripted-qwen3': { vocabulary: 'chatml', template: 'qwen', settings: { strip_thinking: true }, thinks: true },
  'scripted-qwen3-thinking': {
    vocabulary: 'chatml',
    template: 'qwen',
    settings: { strip_thinking: true, open_thinking: true },
    thinks: true,
  },
  'scripted-llama': { vocabulary: 'llama', template: 'llama', thinks: false },
}

/** Names that `loadProfile` knows. */
export const profileNames: readonly string[] = Object.keys(RECIPES)

const vocabularies = new Map<string, Vocabulary>()

function vocabularyOf(name: string): Vocabulary {
  const known = vocabularies.get(name)
  if (known !== undefined) return known
  const loaded = new Vocabulary(fileURLToPath(new URL(`../tokenizers/${name}.json`, import.meta.url)))
  vocabularies.set(name, loaded)
  return loaded
}

/** Loads a profile by its served model name. Throws for an unknown one, naming those that exist. */
export function loadProfile(model: string): Profile {
  const recipe = RECIPES[model]
  if (recipe === undefined) throw new Error(`unknown profile ${model}; known: ${profileNames.join(', ')}`)
  const vocabulary = vocabularyOf(recipe.vocabulary)
  const chatml = recipe.vocabulary === 'chatml'
  const terminator = chatml
    ? { afterCall: vocabulary.idOf('<|im_end|>'), afterText: vocabulary.idOf('<|im_end|>') }
    : { afterCall: vocabulary.idOf('<|eom_id|>'), afterText: vocabulary.idOf('<|eot_id|>') }
  return {
    model,
    vocabulary,
    template: new ChatTemplate(recipe.template, recipe.settings),
    grammar: chatml ? CHATML : LLAMA,
    callTags: chatml ? { open: '<tool_call>', close: '</tool_call>' } : { open: '<|python_tag|>' },
    argumentsKey: chatml ? 'arguments' : 'parameters',
    separator: chatml ? '\n' : '; ',
    takesImages: chatml,
    thinks: recipe.thinks,
    terminator,
    parsers: { tool: chatml ? 'hermes' : 'llama3_json', reasoning: recipe.thinks ? 'qwen3' : null },
  }
}
