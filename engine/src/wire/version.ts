/** Whether a release comes before another, by its leading numbers: `0.5.12.post1` is 0.5.12. */
export function isBefore(version: string, other: string): boolean {
  const [ours, theirs] = [numbers(version), numbers(other)]
  for (const [at, number] of theirs.entries()) {
    const own = ours[at] ?? 0
    if (own !== number) return own < number
  }
  return false
}

function numbers(version: string): number[] {
  return (/^v?(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? '').split('.').map(Number)
}
