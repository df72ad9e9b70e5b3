import type { Generated, GeneratedPart, VersionSpan } from '../engines/token-engine.ts'

/** Two parts of one choice, one behind the other. */
export function together(before: GeneratedPart, next: GeneratedPart): GeneratedPart {
  return {
    index: next.index,
    ids: [...before.ids, ...next.ids],
    logprobs: [...before.logprobs, ...next.logprobs],
    entries: [...before.entries, ...next.entries],
    finishReason: next.finishReason ?? before.finishReason,
    stopReason: next.stopReason ?? before.stopReason,
    text: before.text === null || next.text === null ? null : before.text + next.text,
    // The later leg's prompt holds the earlier one: its rows are of all tokens.
    routedExperts: next.routedExperts ?? before.routedExperts,
    weightVersions: next.weightVersions.length > 0 ? next.weightVersions : before.weightVersions,
  }
}

/** Two pieces of one answer. */
export function togetherWith(before: Generated, next: Generated): Generated {
  const parts = before.parts.map((part) => {
    const more = next.parts.find(({ index }) => index === part.index)
    return more === undefined ? part : together(part, more)
  })
  return {
    parts: [...parts, ...next.parts.filter(({ index }) => !parts.some((part) => part.index === index))],
    promptIds: before.promptIds ?? next.promptIds,
    usage: next.usage ?? before.usage,
    created: before.created ?? next.created,
    model: before.model ?? next.model,
    error: next.error ?? before.error,
  }
}

/** An answer of one choice with the weights that sampled it; null: as the engine told. */
export function withVersions(generated: Generated, versions: readonly VersionSpan[] | null): Generated {
  if (versions === null) return generated
  return { ...generated, parts: generated.parts.map((part) => ({ ...part, weightVersions: versions })) }
}
