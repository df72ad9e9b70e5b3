import { access } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PaddockError } from '../../../core/index.ts'

const folders = ['database', 'databases', 'dev_databases', 'train_databases', 'test_database']

/** Where Spider, BIRD and those after them keep a database, relative to the file of questions. */
export function classicFolders(name: string): readonly string[] {
  return folders.map((folder) => join(folder, name, `${name}.sqlite`))
}

/** The first of `candidates` that exists, relative to the folder of `path`. Throws `TASK_INVALID`. */
export async function databaseFile(path: string, candidates: readonly string[], name: string): Promise<string> {
  for (const file of candidates) {
    const there = await access(join(dirname(path), file)).then(
      () => true,
      () => false,
    )
    if (there) return file
  }
  throw new PaddockError('TASK_INVALID', `${path}: the database ${name} is not there`, {
    data: { file: path, database: name },
    fix: `Put it at ${candidates[0] ?? ''} beside the file.`,
  })
}
