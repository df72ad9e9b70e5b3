/**
 * When two results mean the same. Every part is a parameter of the task, because no fixed rule is right for all
 * questions; {@link sqlPresets} are the rules whose numbers get published.
 */
export interface SqlSemantics {
  /**
   * - `set`: duplicates and order do not count. `bag`: order does not count. `ordered`: row by row.
   * - `by_gold`: `ordered` when the gold has an ORDER BY of its own (not in a subquery), else `bag`.
   * - `by_gold_text`: `ordered` when the words ORDER BY stand anywhere in the gold, else `bag`.
   */
  readonly rows: 'set' | 'bag' | 'ordered' | 'by_gold' | 'by_gold_text'
  /**
   * - `position`: column by column. `permutation`: any order, each column once.
   * - `subset`: the answer may have further columns; each gold column has one of its own.
   * - `exists`: each gold column equals some column of the answer, looked at alone: cells of a row need not stay
   *   together, and two gold columns may meet the same one.
   */
  readonly columns: 'position' | 'permutation' | 'subset' | 'exists'
  /**
   * Two numbers, not both INTEGER, are equal within the larger of both bounds; `relative` is a fraction of the larger magnitude, and
   * does not hold where gold is INTEGER.
   */
  readonly tolerance: { readonly absolute: number; readonly relative: number }
  /** `as_zero`: NULL equals 0. */
  readonly nulls: 'distinct' | 'as_zero'
  /** `as_numbers`: the text `'1'` equals the number 1. */
  readonly numberTexts: 'distinct' | 'as_numbers'
  /** Two results without rows: always equal, or only when their columns could be. */
  readonly emptyTables: 'equal' | 'by_width'
  /** `removed`: both sides run without the word DISTINCT, wherever it stands. Absent: as they are written. */
  readonly distinct?: 'removed' | undefined
  /** `spider`: both sides run with the repairs of Spider's test suite ({@link spiderRepaired}). Absent: as they are written. */
  readonly repairs?: 'spider' | undefined
}

/** Names of the presets. */
export const sqlPresetNames = ['bird-ex', 'spider-testsuite', 'spider2', 'strict'] as const
export type SqlPreset = (typeof sqlPresetNames)[number]

const exactly = { absolute: 0, relative: 0 }

/**
 * - `bird-ex`: `set(predicted) == set(gold)` (BIRD mini-dev `evaluation_ex.py`, SkyRL-SQL, NeMo Gym `bird_sql`).
 * - `spider-testsuite`: bag equality up to a column permutation, ordered when the gold text says ORDER BY anywhere, both
 *   sides without DISTINCT and with `> =` as `>=` (taoyds/test-suite-sql-eval `exec_eval.py`, `keep_distinct` off as published
 *   numbers have it). Where it differs from that script, the guide to SQL tasks says so.
 * - `spider2`: column vectors, absolute tolerance 0.01, NULL as 0, numeric texts as numbers (Spider2 `evaluate.py` with
 *   `ignore_order`, as ported by NeMo Gym `spider2_lite`).
 * - `strict`: what an exact answer to a well-put question is: columns as asked, duplicates count, order where the gold
 *   orders, floating-point noise forgiven.
 */
export const sqlPresets: Readonly<Record<SqlPreset, SqlSemantics>> = {
  'bird-ex': {
    rows: 'set',
    columns: 'position',
    tolerance: exactly,
    nulls: 'distinct',
    numberTexts: 'distinct',
    emptyTables: 'equal',
  },
  'spider-testsuite': {
    rows: 'by_gold_text',
    columns: 'permutation',
    tolerance: exactly,
    nulls: 'distinct',
    numberTexts: 'distinct',
    emptyTables: 'equal',
    distinct: 'removed',
    repairs: 'spider',
  },
  spider2: {
    rows: 'bag',
    columns: 'exists',
    tolerance: { absolute: 1e-2, relative: 1e-9 },
    nulls: 'as_zero',
    numberTexts: 'as_numbers',
    emptyTables: 'equal',
  },
  strict: {
    rows: 'by_gold',
    columns: 'position',
    tolerance: { absolute: 0, relative: 1e-9 },
    nulls: 'distinct',
    numberTexts: 'distinct',
    emptyTables: 'by_width',
  },
}
