/** Without the keys that are undefined: what an exact optional type wants. */
export function present<T extends object>(part: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept = Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined))
  // The keys are those of `part`; only undefined values are gone.
  return kept as { [K in keyof T]: Exclude<T[K], undefined> }
}
