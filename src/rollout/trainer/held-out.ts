/** Splits whose tasks are for evaluation: no training group takes one. */
export const heldOutSplits: ReadonlySet<string> = new Set(['validation', 'test'])
