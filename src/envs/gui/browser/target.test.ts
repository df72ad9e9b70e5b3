import { describe, expect, it } from 'vitest'
import { lineOf, RefBook } from './refs.ts'
import { findTarget } from './target.ts'
import type { TreeNode } from './tree.ts'

let next = 0
const node = (role: string, name: string, children: readonly TreeNode[] = []): TreeNode => {
  next += 1
  return { role, name, value: '', states: [], backendNodeId: next * 100, children }
}
const tree = [
  node('row', 'Ada Moran', [node('cell', 'Ada'), node('button', 'Edit'), node('button', 'Delete')]),
  node('row', 'Ada Moranis', [node('button', 'Edit')]),
  node('button', 'Save "all"'),
  node('button', 'Save'),
]
const book = new RefBook()
const nodes = book.name(tree)
const found = (target: string): string => {
  const result = findTarget(target, nodes)
  return result.ok ? lineOf({ ...result.node, depth: 0 }) : result.error
}

describe('a target', () => {
  it('is a ref, a role and a name, or a name inside another', () => {
    expect(found('e1')).toBe('- row "Ada Moran" [ref=e1]')
    expect(found('button "Save"')).toBe('- button "Save" [ref=e8]')
    expect(found('"Save \\"all\\""')).toBe('- button "Save \\"all\\"" [ref=e7]')
    expect(found('row "Ada Moran" > button "Edit"')).toBe('- button "Edit" [ref=e3]')
    expect(found('row "Moranis" > button "Edit"')).toBe('- button "Edit" [ref=e6]')
    expect(found('button "Edit" #2')).toBe('- button "Edit" [ref=e6]')
  })

  it('that means none or several says what would help', () => {
    expect(found('button "Edit"')).toBe(
      '2 elements are button "Edit" on the page: e3, e6. Use a ref, or add #1, #2, ….',
    )
    expect(found('button "Edit" #3')).toBe('There are only 2 of button "Edit" on the page.')
    expect(found('row "Ada Moranis" > button "Delete"')).toMatch(/There is no button "Delete" in row "Ada Moranis"/)
    expect(found('e99')).toMatch(/no element e99 on the page now. Take a new snapshot/)
    expect(found('Save')).toMatch(/"Save" is no target. Use a ref such as e12, or a role and a name/)
  })

  it('keeps its ref while it lives, and the refs do not depend on the browser', () => {
    const again = book.name([...tree].reverse())
    expect(again.map(({ ref, name }) => `${ref} ${name}`).toSorted()).toEqual(
      nodes.map(({ ref, name }) => `${ref} ${name}`).toSorted(),
    )
  })
})
