import { readFile } from 'node:fs/promises'
import type { Refuse } from '../../refuse.ts'
import type { SqlTaskFile } from '../task-file.ts'
import { importQuestions } from './questions.ts'
import { importSkyRl } from './skyrl.ts'
import { importSpider2, isSpider2, readLines } from './spider2.ts'

/** Reads a file of a data set that is not JSON by its ending; null: it is none. Throws `TASK_INVALID`. */
export async function importFile(path: string, refuse: Refuse): Promise<readonly SqlTaskFile[] | null> {
  if (path.endsWith('.parquet')) return importSkyRl(path)
  if (!path.endsWith('.jsonl')) return null
  const rows = readLines(await readFile(path, 'utf8'), path)
  return isSpider2(rows) ? importSpider2(rows, path) : importQuestions(rows, path, refuse)
}

export { importQuestions } from './questions.ts'
