import { maxNesting, nestingDepth, skipValue } from '../../../core/index.ts'
import type { LooseObject } from '../../session/sampling.ts'
import { addReasoning, type Answer, type ChoiceAnswer } from './answer.ts'
import { type ByteEdit, type ChunkView, readIds } from './chunk-scan.ts'
import { JsonCursor, type KeyTable } from './json-cursor.ts'
import { choiceKeys, entryKeys, key, logprobsKeys, partKeys, rootKeys } from './plain-keys.ts'
import { isTokenId, noPrompt } from './wire-values.ts'

const quote = 0x22
const colonByte = 0x3a
const openBrace = 0x7b
const closeBrace = 0x7d
const comma = 0x2c
const openBracket = 0x5b
const closeBracket = 0x5d
const assistant = Buffer.from('"assistant"')
const hidesNothing: ChunkView = { wantsLogprobs: true, wantsUsage: true }

/** Tokens of one chunk that are read so; a whole answer of more is parsed. */
const mostTokens = 4096
const idsRead = new Int32Array(mostTokens)
const logprobsRead = new Float64Array(mostTokens)
/** Two bounds for each token's text; the second is negative where the text has escapes. */
const textsRead = new Int32Array(2 * mostTokens)

/** Two bounds for each edit; the second is negative where the range becomes null. Known members alone are cut, each once. */
const editsFound = new Int32Array(16)

/** Where a string lies, quotes included. */
class TextPlace {
  start = -1
  end = -1
  escaped = false
}

/**
 * Reads in one pass, without building values, the chunk or whole completion that an engine sends nearly always: one
 * choice with text, ids and logprobs. It finds what a client must not see, as `scanChunk` does, and what the answer
 * takes, as `JSON.parse` and `Answer.add` do. Anything else, valid or not, is refused before the answer is touched.
 */
class PlainChunk extends JsonCursor {
  private view = hidesNothing
  private choiceCount = 0
  private editCount = 0
  /** Where the `message` of a whole completion lies, -1 without one. */
  private messageStart = -1
  private messageEnd = -1
  /** Behind the colon that was read last. */
  private colonEnd = 0
  /** The member that was read last is not for the client. */
  private hidden = false
  private usage: LooseObject | null = null
  private created: number | null = null
  private index = 0
  private stopReason: number | null = null
  private hasPart = false
  private hasRole = false
  private reasoningName: ChoiceAnswer['reasoningName'] = 'reasoning'
  private idCount = -1
  private entryCount = 0
  private promptStart = -1
  private promptEnd = -1
  private readonly id = new TextPlace()
  private readonly model = new TextPlace()
  private readonly finishReason = new TextPlace()
  private readonly content = new TextPlace()
  private readonly reasoning = new TextPlace()

  /** Some client may act on it: the choice has a `finish_reason`. */
  get finishes(): boolean {
    return this.finishReason.start !== -1
  }

  /** Reads the text at `[start, end)`; what was read stays until the next time. False where it is not plain. */
  read(bytes: Buffer, start: number, end: number, view: ChunkView): boolean {
    this.begin(bytes, end, view)
    const behind = this.object(this.space(start), rootKeys)
    if (behind === -1 || this.choiceCount !== 1 || this.space(behind) < end) return false
    if (this.messageStart !== -1 && !this.hasRole) return false
    // Without ids the texts of the tokens may name them.
    return this.entryCount === 0 || this.idCount !== -1
  }

  /** What a client must not see of it, in order. */
  edits(): readonly ByteEdit[] {
    // Made in its final size: an array that grows by `push` has room for 17 at once.
    const edits = Array<ByteEdit>(this.editCount)
    for (let i = 0; i < this.editCount; i += 1) {
      const end = editsFound[2 * i + 1] ?? 0
      edits[i] = { start: editsFound[2 * i] ?? 0, end: Math.abs(end), nulled: end < 0 }
    }
    return edits
  }

  /** Adds what was read. False, and nothing done, where the answer keeps more of it than was read. */
  addTo(answer: Answer): boolean {
    if (answer.keepsEntries && this.entryCount > 0) return false
    answer.id ??= this.placed(this.id)
    answer.model ??= this.placed(this.model)
    answer.created ??= this.created
    if (this.usage !== null) answer.usage = this.usage
    if (this.promptStart !== -1) answer.tellPrompt(readIds(this.bytes, this.promptStart, this.promptEnd) ?? noPrompt)
    if (this.model.start !== -1 && !this.says(this.model, answer.model)) answer.fault('changed_answer')
    const choice = answer.choice(this.index)
    const id = this.says(this.id, choice.answerId) ? choice.answerId : this.placed(this.id)
    answer.piece(choice, id, choice.finishReason !== null && this.bringsMore(choice.finishReason))
    if (choice.finishReason !== null && this.finishes) answer.endedAgain = true
    this.addChoice(choice)
    answer.side(choice, this.idCount)
    return true
  }

  /** The same for a whole completion, whose message is kept as the engine wrote it. */
  addWholeTo(answer: Answer): boolean {
    if (!this.addTo(answer)) return false
    // The fields of the choice say all of a plain message: its value is not needed.
    const message = this.messageStart === -1 ? null : this.bytes.toString('utf8', this.messageStart, this.messageEnd)
    answer.choice(this.index).rawMessage = message
    return true
  }

  private addChoice(choice: ChoiceAnswer): void {
    const content = this.placed(this.content)
    if (content !== null) choice.content = choice.content === null ? content : choice.content + content
    const reasoning = this.placed(this.reasoning)
    if (reasoning !== null) addReasoning(choice, this.reasoningName, reasoning)
    choice.finishReason = this.placed(this.finishReason) ?? choice.finishReason
    choice.stopReason = this.stopReason ?? choice.stopReason
    this.addTokens(choice)
  }

  /** There is something in a piece of a choice that has ended for that reason. */
  private bringsMore(ended: string): boolean {
    const { content, reasoning, finishReason, idCount, entryCount } = this
    const again = finishReason.start === -1 || this.says(finishReason, ended)
    return !again || idCount > 0 || entryCount > 0 || isFilled(content) || isFilled(reasoning)
  }

  private addTokens(choice: ChoiceAnswer): void {
    const { idCount, entryCount } = this
    const firstId = choice.tokenIds.length
    const first = choice.tokenTexts.length
    // The lists of a whole answer are made in their size: what grows by itself has room for half as many more.
    if (firstId === 0 && idCount > 1) choice.tokenIds = Array<number>(idCount)
    if (first === 0 && entryCount > 1) {
      choice.logprobs = Array<number>(entryCount)
      choice.tokenTexts = Array<string>(entryCount)
    }
    const { tokenIds, logprobs, tokenTexts } = choice
    for (let i = 0; i < idCount; i += 1) tokenIds[firstId + i] = idsRead[i] ?? 0
    for (let i = 0; i < entryCount; i += 1) {
      const end = textsRead[2 * i + 1] ?? 0
      logprobs[first + i] = logprobsRead[i] ?? 0
      tokenTexts[first + i] = this.text(textsRead[2 * i] ?? 0, Math.abs(end), end < 0)
    }
  }

  private begin(bytes: Buffer, end: number, view: ChunkView): void {
    this.bytes = bytes
    this.end = end
    this.view = view
    this.editCount = 0
    this.messageStart = -1
    this.choiceCount = 0
    this.usage = null
    this.created = null
    this.index = 0
    this.stopReason = null
    this.hasPart = false
    this.hasRole = false
    this.idCount = -1
    this.entryCount = 0
    this.promptStart = -1
    this.id.start = -1
    this.model.start = -1
    this.finishReason.start = -1
    this.content.start = -1
    this.reasoning.start = -1
  }

  private object(at: number, keys: KeyTable): number {
    const { bytes } = this
    if (bytes[at] !== openBrace) return -1
    let i = this.space(at + 1)
    if (bytes[i] === closeBrace) return i + 1
    let seen = 0
    let place = 0
    let keptEnd = -1
    for (;;) {
      const keyStart = i
      const usual = keys.guess(bytes, i, place)
      const name = usual === null ? this.name(i, keys, place) : usual.key
      place += 1
      if (name > key.unread) {
        if ((seen & (1 << name)) !== 0) return -1
        seen |= 1 << name
      }
      const colonEnd = usual === null ? this.colonEnd : i + usual.written.length
      this.hidden = false
      const end = name === -1 ? -1 : this.member(name, this.space(colonEnd))
      if (end === -1) return -1
      const after = this.space(end)
      const more = bytes[after] === comma
      if (!more && bytes[after] !== closeBrace) return -1
      i = more ? this.space(after + 1) : after
      if (!this.hidden) keptEnd = end
      else if (keptEnd === -1) this.edit(keyStart, more ? i : end, false)
      else {
        this.edit(keptEnd, end, false)
        keptEnd = end
      }
      if (!more) {
        // The object itself is not hidden, whatever its last member was.
        this.hidden = false
        return after + 1
      }
    }
  }

  /** The number of the member's name that begins at `at`, -1 where none does; leaves `colonEnd`. */
  private name(at: number, keys: KeyTable, place: number): number {
    const end = this.string(at)
    if (end === -1 || this.escaped) return -1
    const colon = this.space(end)
    if (this.bytes[colon] !== colonByte) return -1
    this.colonEnd = colon + 1
    return keys.find(this.bytes, at, end, place)
  }

  /** Reads the value of a member. */
  private member(name: number, at: number): number {
    switch (name) {
      case key.choices:
        return this.choices(at)
      case key.id:
        return this.place(this.id, at)
      case key.model:
        return this.place(this.model, at)
      case key.created:
        return this.createdAt(at)
      case key.usage:
        return this.usageAt(at)
      case key.promptIds:
        return this.promptIds(at)
      case key.index:
        return this.indexAt(at)
      case key.delta:
        return this.part(at)
      case key.message:
        return this.message(at)
      case key.finishReason:
        return this.place(this.finishReason, at)
      case key.stopReason:
        return this.stopReasonAt(at)
      case key.tokenIds:
        return this.tokenIds(at)
      case key.logprobs:
        return this.logprobs(at)
      case key.role:
        return this.role(at)
      case key.content:
        return this.textOrNull(this.content, at)
      case key.reasoning:
        return this.reasoningAt('reasoning', at)
      case key.reasoningContent:
        return this.reasoningAt('reasoning_content', at)
      case key.toolCalls:
        return this.toolCalls(at)
      case key.entries:
        return this.entries(at)
      case key.token:
        return this.token(at)
      case key.logprob:
        return this.logprob(at)
      case key.bytes:
        return this.bytesAt(at)
      case key.absent:
        return this.nothing(at)
      case key.unread:
        return -1
      default:
        return this.scalar(at)
    }
  }

  private edit(start: number, end: number, nulled: boolean): void {
    editsFound[2 * this.editCount] = start
    editsFound[2 * this.editCount + 1] = nulled ? -end : end
    this.editCount += 1
  }

  /** A string whose place is kept, or a value that means nothing there. */
  private place(place: TextPlace, at: number): number {
    const end = this.scalar(at)
    if (end === -1 || this.bytes[at] !== quote) return end
    place.start = at
    place.end = end
    place.escaped = this.escaped
    return end
  }

  private textOrNull(place: TextPlace, at: number): number {
    return this.bytes[at] === quote ? this.place(place, at) : this.nothing(at)
  }

  private placed(place: TextPlace): string | null {
    return place.start === -1 ? null : this.text(place.start, place.end, place.escaped)
  }

  /** The text is this one; told without making a string where it is plain. */
  private says(place: TextPlace, text: string | null): boolean {
    const { start, end, escaped } = place
    if (text === null || start === -1) return false
    if (escaped || end - start - 2 !== text.length) return this.placed(place) === text
    const { bytes } = this
    for (let i = 0; i < text.length; i += 1) {
      if (bytes[start + 1 + i] !== text.charCodeAt(i)) return this.placed(place) === text
    }
    return true
  }

  private choices(at: number): number {
    if (this.bytes[at] !== openBracket) return -1
    this.choiceCount += 1
    const end = this.object(this.space(at + 1), choiceKeys)
    if (end === -1) return -1
    const close = this.space(end)
    return this.bytes[close] === closeBracket ? close + 1 : -1
  }

  private createdAt(at: number): number {
    if (!this.startsNumber(at)) return this.scalar(at)
    const end = this.number(at)
    this.created = this.value
    return end
  }

  private indexAt(at: number): number {
    const end = this.number(at)
    this.index = this.value
    return isTokenId(this.value) ? end : -1
  }

  private stopReasonAt(at: number): number {
    if (!this.startsNumber(at)) return this.nothing(at)
    const end = this.number(at)
    this.stopReason = this.value
    return end
  }

  private startsNumber(at: number): boolean {
    const byte = this.bytes[at] ?? 0
    return byte === 0x2d || (byte >= 0x30 && byte <= 0x39)
  }

  private usageAt(at: number): number {
    const end = this.bytes[at] === openBrace ? this.usageObject(at) : this.nothing(at)
    this.hidden = !this.view.wantsUsage
    return end
  }

  private usageObject(at: number): number {
    const end = this.plainUsage(at)
    return end === -1 ? this.parsedUsage(at) : end
  }

  /** A usage of counts and nulls alone, in compact text. -1 for any other. */
  private plainUsage(at: number): number {
    const { bytes } = this
    const usage: Record<string, unknown> = {}
    for (let i = at + 1; ; i += 1) {
      const nameEnd = this.string(i)
      if (nameEnd === -1 || this.escaped || bytes[nameEnd] !== colonByte) return -1
      const name = this.text(i, nameEnd, false)
      // A parser makes a member of it, an assignment does not.
      if (name === '__proto__') return -1
      const counts = this.startsNumber(nameEnd + 1)
      const end = counts ? this.number(nameEnd + 1) : this.nothing(nameEnd + 1)
      if (end === -1) return -1
      usage[name] = counts ? this.value : null
      if (bytes[end] === closeBrace) {
        this.usage = usage
        return end + 1
      }
      if (bytes[end] !== comma) return -1
      i = end
    }
  }

  /** With details of the engine's own: the one value that is parsed. */
  private parsedUsage(at: number): number {
    try {
      const end = skipValue(this.bytes, at)
      if (nestingDepth(this.bytes.subarray(at, end)) > maxNesting) return -1
      this.usage = JSON.parse(this.bytes.toString('utf8', at, end))
      return end
    } catch {
      return -1
    }
  }

  private promptIds(at: number): number {
    let end: number
    if (this.bytes[at] === openBracket) {
      // A flat array of numbers ends at the first bracket; `readIds` says whether it is one.
      end = this.bytes.indexOf(closeBracket, at) + 1
      if (end === 0) return -1
      this.promptStart = at
      this.promptEnd = end
    } else end = this.nothing(at)
    this.hidden = true
    return end
  }

  private part(at: number): number {
    if (this.hasPart) return -1
    this.hasPart = true
    return this.object(at, partKeys)
  }

  private message(at: number): number {
    this.messageStart = at
    this.messageEnd = this.part(at)
    return this.messageEnd
  }

  private role(at: number): number {
    for (let i = 0; i < assistant.length; i += 1) if (this.bytes[at + i] !== assistant[i]) return this.nothing(at)
    this.hasRole = true
    return at + assistant.length
  }

  private reasoningAt(name: ChoiceAnswer['reasoningName'], at: number): number {
    if (this.bytes[at] !== quote) return this.nothing(at)
    if (this.reasoning.start !== -1) return -1
    this.reasoningName = name
    return this.place(this.reasoning, at)
  }

  /** `[]` and not `[ ]`: as `scanChunk` knows a list without calls. */
  private toolCalls(at: number): number {
    if (this.bytes[at] !== openBracket) return this.nothing(at)
    return this.bytes[at + 1] === closeBracket ? at + 2 : -1
  }

  private tokenIds(at: number): number {
    const { bytes } = this
    let end: number
    if (bytes[at] === openBracket) {
      this.idCount = 0
      end = this.integers(at, idsRead)
      this.idCount = this.count
    } else end = this.nothing(at)
    this.hidden = true
    return end
  }

  private logprobs(at: number): number {
    const end = this.bytes[at] === openBrace ? this.object(at, logprobsKeys) : this.nothing(at)
    const shown = this.view.wantsLogprobs || this.bytes[at] !== openBrace
    if (!shown && end !== -1) this.edit(at, end, true)
    return end
  }

  private entries(at: number): number {
    if (this.bytes[at] !== openBracket) return this.nothing(at)
    let i = this.space(at + 1)
    if (this.bytes[i] === closeBracket) return i + 1
    for (;;) {
      if (this.entryCount === mostTokens) return -1
      const end = this.entry(i)
      if (end === -1) return -1
      i = this.space(end)
      if (this.bytes[i] === closeBracket) return i + 1
      if (this.bytes[i] !== comma) return -1
      i = this.space(i + 1)
    }
  }

  private entry(at: number): number {
    const usual = this.usualEntry(at)
    const end = usual === -1 ? this.anyEntry(at) : usual
    this.entryCount += 1
    return end
  }

  /** A compact entry with its members in their usual places: most of an answer's bytes are of such. -1 for any other. */
  private usualEntry(at: number): number {
    const { bytes } = this
    this.beginEntry()
    if (bytes[at] !== openBrace) return -1
    let i = at + 1
    let seen = 0
    for (let place = 0; ; place += 1) {
      const usual = entryKeys.guess(bytes, i, place)
      if (usual === null || (seen & (1 << usual.key)) !== 0) return -1
      // Names that mean nothing may come twice.
      seen |= (1 << usual.key) & ~1
      const value = i + usual.written.length
      const end = this.entryMember(usual.key, value)
      if (end === -1) return -1
      if (bytes[end] === closeBrace) return textsRead[2 * this.entryCount] === -1 ? -1 : end + 1
      if (bytes[end] !== comma) return -1
      i = end + 1
    }
  }

  private entryMember(name: number, at: number): number {
    if (name === key.token) return this.token(at)
    if (name === key.logprob) return this.logprob(at)
    return name === key.bytes ? this.bytesAt(at) : this.scalar(at)
  }

  private anyEntry(at: number): number {
    this.beginEntry()
    const end = this.object(at, entryKeys)
    return textsRead[2 * this.entryCount] === -1 ? -1 : end
  }

  private beginEntry(): void {
    logprobsRead[this.entryCount] = Number.NaN
    textsRead[2 * this.entryCount] = -1
  }

  private bytesAt(at: number): number {
    return this.bytes[at] === openBracket ? this.integers(at, null) : this.nothing(at)
  }

  private token(at: number): number {
    const end = this.string(at)
    textsRead[2 * this.entryCount] = at
    textsRead[2 * this.entryCount + 1] = this.escaped ? -end : end
    return end
  }

  private logprob(at: number): number {
    if (!this.startsNumber(at)) return this.nothing(at)
    const end = this.number(at)
    logprobsRead[this.entryCount] = this.value
    return end
  }
}

function isFilled({ start, end }: TextPlace): boolean {
  return start !== -1 && end - start > 2
}

/** Read and done with before anything else runs: one is enough for all answers. */
export const plainChunk = new PlainChunk()
