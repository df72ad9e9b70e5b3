import { join } from 'node:path'
import Database from 'better-sqlite3'
import { z } from 'zod'
import { PaddockError } from '../../../core/index.ts'
import type { Document } from './document.ts'

const row = z.object({ id: z.string(), title: z.string(), text: z.string() })

/** The passages of a built corpus, read from SQLite. */
export interface Documents extends Disposable {
  /** By place in the corpus. Throws `STORE_CORRUPT` when it is not there. */
  at(number: number): Document
  /** By id; null when there is none. */
  get(id: string): Document | null
}

/** Opens `documents.sqlite` of a corpus for reading. */
export function openDocuments(directory: string): Documents {
  const path = join(directory, 'documents.sqlite')
  const database = new Database(path, { readonly: true })
  const byNumber = database.prepare('SELECT id, title, text FROM documents WHERE number = ?')
  const byId = database.prepare('SELECT id, title, text FROM documents WHERE id = ?')
  return {
    at: (number) => {
      const found = byNumber.get(number)
      if (found !== undefined) return row.parse(found)
      throw new PaddockError('STORE_CORRUPT', `${path} has no passage ${number}`, {
        data: { path },
        fix: 'Remove the directory of this corpus; it is built again at its next use.',
      })
    },
    get: (id) => {
      const found = byId.get(id)
      return found === undefined ? null : row.parse(found)
    },
    [Symbol.dispose]: () => database.close(),
  }
}
