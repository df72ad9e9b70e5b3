/** Numbers of a line of memory, each 0 at first; their types by database. */
const counts = {
  whole: [
    'attempts',
    'numbers',
    'passed',
    'nulls',
    'infra',
    'stopped',
    'tokens',
    'most_tokens',
    'turns',
    'used',
    'stale',
    'filtered',
    'no_signal',
    'truncated',
    'skipped',
  ],
  real: ['reward_sum', 'reward_squares', 'last_at'],
} as const

/** `memory_lines`: what attempts at a task came to, one line for each run, harness, variant and weights. */
function tables(o: {
  readonly schema: string
  readonly key: string
  readonly text: string
  readonly whole: string
  readonly real: string
  readonly end: string
}): string {
  const columns = [
    ...['task', 'run', 'harness', 'variant', 'weights'].map((name) => `${name} ${o.text} NOT NULL`),
    ...counts.whole.map((name) => `${name} ${o.whole} NOT NULL DEFAULT 0`),
    ...counts.real.map((name) => `${name} ${o.real} NOT NULL DEFAULT 0`),
  ]
  return `
  -- What attempts at tasks came to, kept as they settle. '' as weights: the engine did not name them.
  CREATE TABLE ${o.schema}memory_lines (
    n ${o.key},
    ${columns.join(',\n    ')},
    UNIQUE (run, task, harness, variant, weights)
  )${o.end};
  CREATE INDEX memory_lines_task ON ${o.schema}memory_lines (task);
  -- As what each attempt is counted: 'number', 'null', 'infra' or 'stopped'.
  CREATE TABLE ${o.schema}remembered (
    rollout ${o.text} PRIMARY KEY,
    line ${o.whole} NOT NULL,
    counted ${o.text} NOT NULL,
    reward ${o.real},
    tokens ${o.whole} NOT NULL,
    turns ${o.whole} NOT NULL
  )${o.end};`
}

export const sqliteMemory = tables({
  schema: '',
  key: 'INTEGER PRIMARY KEY',
  text: 'TEXT',
  whole: 'INTEGER',
  real: 'REAL',
  end: ' STRICT',
})

const usedAt = (table: string, real: string): string =>
  `-- When a trainer last used a row, of those whose use stands; 0: never.
  ALTER TABLE ${table} ADD COLUMN used_at ${real} NOT NULL DEFAULT 0`

export const sqliteUsedAt = usedAt('memory_lines', 'REAL')
export const postgresUsedAt = usedAt('paddock.memory_lines', 'float8')

export const postgresMemory = tables({
  schema: 'paddock.',
  key: 'bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  text: 'text COLLATE "C"',
  whole: 'bigint',
  real: 'float8',
  end: '',
})
