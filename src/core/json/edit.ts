import { type JsonMember, scanMembers } from './scan.ts'

/** What to change at the top level of an object. `set` values are JSON texts. */
export interface ObjectEdit {
  readonly set?: Readonly<Record<string, string>>
  readonly remove?: readonly string[]
}

/**
 * The same object with members set and removed by byte splice: every other byte stays as it was.
 * A key that is present keeps its place and gets the new value (of duplicates the last is set and the others are
 * removed, which is what every common parser reads); a new key goes to the end. Throws `BODY_INVALID_JSON`.
 * `scanned`: the members of these very bytes, where they are known already.
 */
export function editObject(
  bytes: Uint8Array,
  edit: ObjectEdit,
  scanned: ReturnType<typeof scanMembers> = scanMembers(bytes),
): Buffer {
  const { members, end } = scanned
  if (!touches(members, edit)) return withAdded(bytes, scanned, edit.set ?? {})
  const set = new Map(Object.entries(edit.set ?? {}))
  const removed = new Set(edit.remove ?? [])
  const last = new Map<string, number>()
  members.forEach((member, index) => last.set(member.key, index))

  const parts: Uint8Array[] = []
  let from = 0
  const dropped = members.map((member, index) => {
    if (set.has(member.key)) return last.get(member.key) !== index
    return removed.has(member.key)
  })
  const cuts = cutMembers(members, dropped)
  let cutAt = 0
  members.forEach((member, index) => {
    if (dropped[index]) {
      const cut = cuts[cutAt]
      cutAt += 1
      if (cut === undefined) return
      parts.push(bytes.subarray(from, cut.start))
      from = cut.end
      return
    }
    const value = set.get(member.key)
    if (value === undefined) return
    parts.push(bytes.subarray(from, member.valueStart), Buffer.from(value))
    from = member.valueEnd
  })

  const added = [...set].filter(([key]) => !last.has(key)).map(([key, value]) => `${JSON.stringify(key)}:${value}`)
  if (added.length > 0) {
    const kept = dropped.includes(false)
    parts.push(bytes.subarray(from, end - 1), Buffer.from(`${kept ? ',' : ''}${added.join(',')}`))
    from = end - 1
  }
  parts.push(bytes.subarray(from))
  return Buffer.concat(parts)
}

/** Some member that is there is changed. */
function touches(members: readonly JsonMember[], { set = {}, remove = [] }: ObjectEdit): boolean {
  for (const { key } of members) {
    if (remove.includes(key)) return true
    for (const name in set) if (name === key) return true
  }
  return false
}

/** The object with members that it does not have yet. */
function withAdded(
  bytes: Uint8Array,
  { members, end }: ReturnType<typeof scanMembers>,
  added: Readonly<Record<string, string>>,
): Buffer {
  const text = membersText(added)
  // The first member of all has no comma before it.
  const from = members.length === 0 && text.length > 0 ? 1 : 0
  const size = text.length - from
  const out = Buffer.allocUnsafe(bytes.length + size)
  out.set(bytes.subarray(0, end - 1))
  text.copy(out, end - 1, from)
  // Mostly the closing brace alone.
  for (let at = end - 1; at < bytes.length; at += 1) out[at + size] = bytes[at] ?? 0
  return out
}

/** The members that were added last, if they cannot change: most bodies get the same ones. */
let lastAdded: { readonly added: Readonly<Record<string, string>>; readonly text: Buffer } | null = null

/** Members as text, each with a comma before it. */
function membersText(added: Readonly<Record<string, string>>): Buffer {
  if (lastAdded?.added === added) return lastAdded.text
  let members = ''
  for (const key of Object.keys(added)) members += `,${JSON.stringify(key)}:${added[key] ?? 'null'}`
  const text = Buffer.from(members)
  if (Object.isFrozen(added)) lastAdded = { added, text }
  return text
}

/** Byte ranges that take the marked members out of their object, commas included, one range per marked member. */
export function cutMembers(
  members: readonly JsonMember[],
  dropped: readonly boolean[],
): { readonly start: number; readonly end: number }[] {
  const cuts: { start: number; end: number }[] = []
  let keptBefore = false
  members.forEach((member, index) => {
    if (!dropped[index]) {
      keptBefore = true
      return
    }
    const before = members[index - 1]
    const after = members[index + 1]
    if (keptBefore && before !== undefined) cuts.push({ start: before.valueEnd, end: member.valueEnd })
    else cuts.push({ start: member.keyStart, end: after === undefined ? member.valueEnd : after.keyStart })
  })
  return cuts
}
