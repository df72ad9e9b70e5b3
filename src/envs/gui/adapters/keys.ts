/** The names in a combination such as `ctrl+shift+t`; a plus sign at the end is the key `+`. */
export function splitKeys(combination: string): string[] {
  return combination === '+' ? ['+'] : combination.replace(/\+\+$/, '+plus').split('+')
}

/** Names as a combination. Letters are keys, not characters: models write `CTRL`, `A` and mean no shift. */
export function joinKeys(names: readonly string[]): string {
  return names.map((name) => (name === '+' ? 'plus' : /^[A-Z]$/.test(name) ? name.toLowerCase() : name)).join('+')
}
