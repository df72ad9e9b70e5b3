import { readFileSync } from 'node:fs'
import { Template } from '@huggingface/jinja'
import { EngineError } from '../errors.ts'
import type { TemplateMessage } from './messages.ts'

/** What a prompt is rendered from. */
export interface PromptParts {
  readonly messages: readonly TemplateMessage[]
  /** One JSON line per tool; empty when none are offered. */
  readonly tools: readonly string[]
  readonly addGenerationPrompt: boolean
  readonly continueFinalMessage: boolean
  /** `chat_template_kwargs` of the request. */
  readonly kwargs: Readonly<Record<string, unknown>>
}

/** A chat template: a Jinja file of `engine/templates/` with the fixed settings of a profile. */
export class ChatTemplate {
  readonly name: string
  readonly #template: Template
  readonly #settings: Readonly<Record<string, unknown>>

  constructor(file: string, settings: Readonly<Record<string, unknown>> = {}) {
    this.name = file
    this.#settings = settings
    this.#template = new Template(readFileSync(new URL(`../../templates/${file}.jinja`, import.meta.url), 'utf8'))
  }

  /**
   * Renders the prompt text. With `continueFinalMessage` the text ends where the last message's content ends, as
   * `apply_chat_template` of Hugging Face transformers cuts it. Throws a 400 when both that and a generation prompt
   * are asked for, as vLLM does.
   */
  render(parts: PromptParts): string {
    if (parts.continueFinalMessage && parts.addGenerationPrompt) {
      throw new EngineError('Cannot set both `continue_final_message` and `add_generation_prompt` to True.')
    }
    const text = this.#template.render({
      ...this.#settings,
      ...parts.kwargs,
      messages: parts.messages,
      tools: parts.tools.length === 0 ? undefined : parts.tools,
      add_generation_prompt: parts.addGenerationPrompt,
    })
    return parts.continueFinalMessage ? cutAfterFinalContent(text, parts.messages.at(-1)) : text
  }
}

function cutAfterFinalContent(text: string, last: TemplateMessage | undefined): string {
  const content = last?.content.trim() ?? ''
  const at = text.lastIndexOf(content)
  if (content === '' || at === -1) throw new EngineError('continue_final_message: the final message has no content')
  return text.slice(0, at + content.length)
}
