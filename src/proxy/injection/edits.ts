/** Tokens `[start, end)` of a prompt that give way to others. */
export interface PromptEdit {
  readonly start: number
  readonly end: number
  readonly ids: readonly number[]
}

/**
 * So many equal ids in a row show that two prompts say the same again, and so many ids of the shorter one may be passed over for it:
 * what a tokenizer writes otherwise at the border of a text, then short words between two texts, then anything.
 */
const resyncs = [
  { window: 12, passed: 2 },
  { window: 6, passed: 2 },
  { window: 12, passed: 8 },
  { window: 12, passed: Number.POSITIVE_INFINITY },
]

/**
 * What makes one render of a prompt the other, which has less. Applied, they give it exactly, whatever the ids are; that they lie
 * where something was put in is a matter of the ids around it being told apart.
 */
export function editsBetween(full: Int32Array, clean: Int32Array): readonly PromptEdit[] {
  let head = 0
  while (head < full.length && head < clean.length && full[head] === clean[head]) head += 1
  if (head === full.length && head === clean.length) return []
  let tail = 0
  const most = Math.min(full.length, clean.length) - head
  while (tail < most && full[full.length - 1 - tail] === clean[clean.length - 1 - tail]) tail += 1
  const fullEnd = full.length - tail
  const cleanEnd = clean.length - tail
  const edits: PromptEdit[] = []
  let [at, cleanAt] = [head, head]
  while (at < fullEnd || cleanAt < cleanEnd) {
    if (at < fullEnd && cleanAt < cleanEnd && full[at] === clean[cleanAt]) {
      at += 1
      cleanAt += 1
      continue
    }
    const next = resync({ full, at, fullEnd }, { clean, cleanAt, cleanEnd })
    edits.push({ start: at, end: next.at, ids: Array.from(clean.subarray(cleanAt, next.cleanAt)) })
    at = next.at
    cleanAt = next.cleanAt
  }
  return edits
}

/** Where both go on alike; at their ends where they do not before. */
function resync(
  { full, at, fullEnd }: { readonly full: Int32Array; readonly at: number; readonly fullEnd: number },
  { clean, cleanAt, cleanEnd }: { readonly clean: Int32Array; readonly cleanAt: number; readonly cleanEnd: number },
): { readonly at: number; readonly cleanAt: number } {
  for (const { window: wanted, passed } of resyncs) {
    for (let from = cleanAt; from < cleanEnd && from - cleanAt <= passed; from += 1) {
      const window = Math.min(wanted, cleanEnd - from)
      for (let place = at; place + window <= fullEnd; place += 1) {
        let length = 0
        while (length < window && full[place + length] === clean[from + length]) length += 1
        // At the end of what is left the whole rest must be the same.
        if (length === window && (window === wanted || place + window === fullEnd)) return { at: place, cleanAt: from }
      }
    }
  }
  return { at: fullEnd, cleanAt: cleanEnd }
}

/**
 * The edits of a render, as those of the prompt that was sampled from: the same where they are one; of a spliced prompt, which
 * keeps earlier ids and has a rendered end, those that lie in that end.
 */
export function editsOfPrompt(
  prompt: Int32Array,
  rendered: Int32Array,
  edits: readonly PromptEdit[],
): readonly PromptEdit[] {
  let tail = 0
  const most = Math.min(prompt.length, rendered.length)
  while (tail < most && prompt[prompt.length - 1 - tail] === rendered[rendered.length - 1 - tail]) tail += 1
  const same = rendered.length - tail
  const by = prompt.length - rendered.length
  return edits.flatMap((edit) => (edit.start < same ? [] : [{ ...edit, start: edit.start + by, end: edit.end + by }]))
}
