import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { tempDir } from '../../../../test/fixtures/temp-dir.ts'
import { databaseScript } from './database.ts'
import { levels } from './questions.ts'
import { themes } from './themes.ts'

const directory = tempDir()

/** The database of a theme and two others of its script, as the verifier makes them. */
function databasesOf(theme: (typeof themes)[number], world: number): readonly Database.Database[] {
  return [0, 1, 2].map((seed) => {
    const file = join(directory, `${theme.name}-${world}-${seed}.sqlite`)
    execFileSync('python3', ['-I', '-', file, String(seed)], { input: databaseScript(theme, world) })
    return new Database(file, { readonly: true })
  })
}

test.each(themes.map((theme, world) => ({ theme, name: theme.name, world })))(
  'every question about a $name has an answer, and a wrong query another somewhere',
  ({ theme, world }) => {
    const databases = databasesOf(theme, world)
    const rows = (sql: string) => databases.map((database) => JSON.stringify(database.prepare(sql).raw().all()))
    for (const [i, questionsOf] of levels.entries()) {
      const questions = questionsOf(theme)
      expect(questions.length, `level ${i + 1}`).toBeGreaterThanOrEqual(50)
      expect(new Set(questions.map(({ question }) => question)).size).toBe(questions.length)
      for (const { question, gold, weak } of questions) {
        const answers = rows(gold)
        expect(answers[0], question).not.toBe('[]')
        expect(rows(weak), question).not.toEqual(answers)
      }
    }
    for (const database of databases) database.close()
  },
)
