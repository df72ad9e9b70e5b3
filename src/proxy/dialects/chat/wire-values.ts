/** What an engine's JSON says, or that it says nothing usable: no value is made into another one. */

/** Stands for what is no id: no vocabulary holds it. */
export const noId = -1

/** A prompt that was told and is no list of ids. */
export const noPrompt = Int32Array.of(noId)

const largestId = 2 ** 31 - 1

/** The id, or {@link noId} for anything but an integer that an id can be. */
export function tokenIdOf(value: unknown): number {
  return isTokenId(value) ? value : noId
}

export function isTokenId(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= largestId
}

/** The number of a choice, 0 where none is given, {@link noId} for what is no number of a choice. */
export function choiceIndexOf(value: unknown): number {
  return value === undefined ? 0 : tokenIdOf(value)
}

/** A count, null for anything else. */
export function countOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}
