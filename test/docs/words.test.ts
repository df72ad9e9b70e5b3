import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Words that were coined here and have a field word now: the word, and what to say instead. */
const coined: readonly (readonly [RegExp, string])[] = [
  [/\bfates?\b/i, 'outcome (of a call), end (of a rollout)'],
  [/\bplays\b|\ba play\b|\bthe play\b/i, 'script'],
  [/\bcrowds?\b/i, 'in-flight set'],
  [/(?<!help ?)\bdesks?\b/i, 'tool server, inspector'],
  [/\btake-in\b/i, 'ingest'],
  [/\b(was|were|is|are|be) taken in\b(?! (sorted|turns|an?y? order))/i, 'imported, ingested'],
  [/\b(box|rollout)['’s]*[ /]door\b|\bpublic door\b/i, 'sandbox gateway, public interface'],
  [/\bwires\b/i, 'API'],
  [/\bshel(f|ves)\b/i, 'cache'],
  [/\bsocket slots?\b/i, 'model socket'],
  [/\bdrift ledger\b/i, 'drift report'],
]

/** Text for readers: pages, and what the source says in comments and messages. Content of tasks is its own. */
const pages = execFileSync(
  'git',
  [
    'ls-files',
    '*.md',
    'src/*.ts',
    'engine/src/*.ts',
    'scripts/*',
    'web/*',
    'bench/*',
    'clients/*',
    'deploy/*',
    'sandboxes/*',
  ],
  {
    cwd: root,
    encoding: 'utf8',
  },
)
  .split('\n')
  .filter(
    (path) =>
      path !== '' &&
      !/^(examples\/tasks\/|bench\/math\/|src\/envs\/(gui\/apps|search\/generate)\/|src\/envs\/gui\/application\/words\.ts$)/.test(
        path,
      ),
  )

it.each(coined.map(([word, instead]) => [word.source, word, instead] as const))(
  'no public text says %s',
  (_source, word) => {
    const found = pages.flatMap((path) =>
      readFileSync(`${root}/${path}`, 'utf8')
        .split('\n')
        .flatMap((line, at) => (word.test(line) ? [`${path}:${at + 1}: ${line.trim().slice(0, 120)}`] : [])),
    )
    expect(found).toEqual([])
  },
)
