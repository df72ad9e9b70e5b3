import { IncrementalText } from '../tokenizer/incremental.ts'
import { draw } from './sampling.ts'
import { StopStrings } from './stop-strings.ts'
import type { TrieWalk } from '../policy/trie.ts'
import type { Vocabulary } from '../tokenizer/tokenizer.ts'
import type { Draw, LogprobsMode, SamplingParams } from './sampling.ts'

export type FinishReason = 'stop' | 'length' | 'abort'

/** A run of output tokens by one weight version; half open, over output positions (vLLM `WeightVersionSpan`). */
export interface VersionSpan {
  readonly version: string
  readonly start: number
  readonly end: number
}

/** What one step of a choice brought. `draw` is absent when the choice was aborted. */
export interface ChoiceStep {
  readonly choice: number
  readonly draw: Draw | undefined
  readonly text: string
  readonly finish: { readonly reason: FinishReason; readonly stop: string | number | null } | undefined
}

/** One of the n answers of a generation while it is being written. */
export class Choice {
  readonly index: number
  readonly ids: number[] = []
  readonly draws: Draw[] = []
  readonly versions: { version: string; start: number; end: number }[] = []
  text = ''
  finish: ChoiceStep['finish']
  readonly #walk: TrieWalk
  readonly #params: SamplingParams
  readonly #maxTokens: number
  readonly #terminators: ReadonlySet<number>
  readonly #random: () => number
  readonly #detokenizer: IncrementalText
  readonly #stops: StopStrings

  constructor(
    index: number,
    setting: {
      walk: TrieWalk
      params: SamplingParams
      maxTokens: number
      terminators: ReadonlySet<number>
      vocabulary: Vocabulary
      random: () => number
    },
  ) {
    this.index = index
    this.#walk = setting.walk
    this.#params = setting.params
    this.#maxTokens = setting.maxTokens
    this.#terminators = setting.terminators
    this.#random = setting.random
    this.#detokenizer = new IncrementalText(setting.vocabulary, { skipSpecial: setting.params.skipSpecial })
    this.#stops = new StopStrings(setting.params.stop, setting.params.includeStop)
  }

  /** Candidates that the tokens so far allow. */
  get candidateNames(): string[] {
    return this.#walk.names
  }

  /** Draws the next token under weight version `version`. */
  step(version: string, mode: LogprobsMode): ChoiceStep {
    const drawn = draw(this.#walk.next(), this.#params, mode, this.#random)
    this.#walk.advance(drawn.id)
    this.ids.push(drawn.id)
    this.draws.push(drawn)
    this.#count(version)
    const ended = this.#terminators.has(drawn.id)
    const stopId = this.#params.stopTokenIds.includes(drawn.id)
    // A token that ends the answer is no text (vLLM detokenizer, `stop_terminated`).
    const shown = this.#stops.push(ended || stopId ? '' : this.#detokenizer.push(drawn.id))
    let text = shown.text
    if (shown.stopped !== undefined) this.finish = { reason: 'stop', stop: shown.stopped }
    else if (ended || stopId) this.finish = { reason: 'stop', stop: ended ? null : drawn.id }
    else if (this.ids.length >= this.#maxTokens) this.finish = { reason: 'length', stop: null }
    if (this.finish !== undefined && shown.stopped === undefined) text += this.#rest()
    this.text += text
    return { choice: this.index, draw: drawn, text, finish: this.finish }
  }

  /** Ends the answer where it stands. */
  abort(): ChoiceStep {
    this.finish = { reason: 'abort', stop: null }
    const text = this.#rest()
    this.text += text
    return { choice: this.index, draw: undefined, text, finish: this.finish }
  }

  #rest(): string {
    const tail = this.#stops.push(this.#detokenizer.end())
    return tail.text + this.#stops.end()
  }

  #count(version: string): void {
    const last = this.versions.at(-1)
    if (last?.version === version) last.end++
    else this.versions.push({ version, start: this.ids.length - 1, end: this.ids.length })
  }
}
