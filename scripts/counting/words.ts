/** Turns of phrase that pages, messages, comments and test titles shall not have, and those that shall be rare. */
import { isTest, type Tree } from './tree.ts'
import type { Source } from './source.ts'
import { lineOf } from './syntax.ts'

/** Never English. */
const banned: Readonly<Record<string, RegExp>> = {
  'of before': /\b(?:of|than|as) before\b(?! (?:the|it|they|a|any))/gi,
  'is none': /\b(?:is|are|was|were) none\b/gi,
  anew: /\banew\b/gi,
  'as many as may': /\bas (?:many|much) as may\b/gi,
  'what of it': /\bwhat of (?:it|its|the)\b/gi,
  'of ours': /\bof (?:ours|theirs)\b/gi,
}

const be = '(?:is|are|was|were|be|been|being)'

/** Lawful, and far too frequent. */
const watched: Readonly<Record<string, RegExp>> = {
  'What is':
    /(?:^|[.;:|] |\*\*? |\/\/ )What (?:is|was|were|are|has|have|came|comes|a|an|the|it|they|could|cannot|can|of|one|does|did|goes|stands|he|you)\b/gm,
  'goes on': /\b(?:goes|go|going|went|gone) on\b/gi,
  'by itself': /\bby (?:itself|themselves)\b|\bof (?:its|their) own\b/gi,
  nobody: /\b(?:nobody|somebody)\b/gi,
  'where it is':
    /\bwhere (?:it|there|they|one|none|nobody|somebody|that|this|no|nothing) (?:is|are|was|has|have|can|cannot|does|did|says|needs)\b/gi,
  'stands in':
    /\b(?:stand|stands|stood|standing) (?:in|at|behind|before|there|on|under|beside|between|alone|still|where|as|for|with|here|anew|over)\b/gi,
  beside: /\bbeside\b/gi,
  'is told': new RegExp(`\\b${be} told\\b|\\btells? of\\b|\\btold of\\b`, 'gi'),
  whoever: /\b(?:whoever|whomever|whatever|whichever)\b/gi,
  'Of a':
    /(?:^|[.;:|] |\*\*? |\/\/ )Of (?:a|an|the|its|their|what|whom|all|one|those|several|each|some|any|this|that|our)\b/gm,
  'comes to': /\bcom(?:es?|ing) to\b|\bcame to\b/gi,
}

export const patterns = { banned, watched }

export interface Hit {
  readonly path: string
  readonly line: number
  readonly text: string
}

/** A piece of prose, and where in its file it begins. */
type Prose = readonly { readonly at: number; readonly text: string }[]

export function hitsOf(pattern: RegExp, tree: Tree, prose: ReadonlyMap<string, Prose>): readonly Hit[] {
  const hits: Hit[] = []
  for (const [path, pieces] of prose) {
    for (const { at, text } of pieces) {
      for (const { index, 0: found } of text.matchAll(pattern)) {
        hits.push({ path, line: lineOf(tree.text(path), at + index), text: found.trim() })
      }
    }
  }
  return hits
}

/** Content of tasks and of recorded proofs is its own; this file quotes what it looks for. */
const others =
  /^(examples\/tasks\/|bench\/math\/|docs\/reference\/api\/|src\/envs\/(gui\/apps|search\/generate)\/|scripts\/counting\/words\.ts)/
const read = /\.(md|py|c|h|sh|mjs|cjs|css|html)$|^scripts\/|^(check|paddock|quickstart)$|(^|\/)Dockerfile$/

/** Of TypeScript: comments, and texts of more than one word; of tests: comments and titles. Other files are read whole. */
export function proseOf(tree: Tree, sources: ReadonlyMap<string, Source>): ReadonlyMap<string, Prose> {
  const prose = new Map<string, Prose>()
  for (const path of tree.paths) {
    if (others.test(path)) continue
    const source = sources.get(path)
    if (source !== undefined) {
      const comments = source.comments.map(({ start, end }) => ({ at: start, text: source.text.slice(start, end) }))
      prose.set(path, [...comments, ...(isTest(path) ? titlesOf(source) : textsOf(source))])
    } else if (read.test(path)) prose.set(path, [{ at: 0, text: tree.text(path) }])
  }
  return prose
}

const title = /\b(?:describe|it|test)(?:\.\w+)*(?:\([^\n]*?\))?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g

const titlesOf = ({ code }: Source): Prose =>
  [...code.matchAll(title)].map(({ index, 0: whole, 2: text = '' }) => ({ at: index + whole.indexOf(text), text }))

/** The command line has its help and its errors in texts. */
const textsOf = ({ facts }: Source): Prose => facts?.texts.filter(({ text }) => /\w \w/.test(text)) ?? []
