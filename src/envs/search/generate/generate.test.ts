import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { normaliseAnswer } from '../../../reward/index.ts'
import { generatePassages, generateQuestions } from './index.ts'

const source = { kind: 'generated', version: 1, seed: 20, passages: 4000 } as const
const committed = join(import.meta.dirname, '../../../../examples/tasks/search/questions.jsonl')

describe('the made-up world', () => {
  test('gives the committed questions', async () => {
    const lines = generateQuestions(source, 70).map((question) => `${JSON.stringify(question)}\n`)
    expect(await readFile(committed, 'utf8')).toBe(lines.join(''))
  })

  test('has thousands of passages with ids and titles of their own', () => {
    const passages = generatePassages(source)
    expect(passages.length).toBeGreaterThan(3900)
    expect(new Set(passages.map(({ id }) => id)).size).toBe(passages.length)
    expect(new Set(passages.map(({ title }) => title)).size).toBe(passages.length)
  })

  test('answers each question in its last passage, and never in the question', () => {
    const passages = new Map(generatePassages(source).map((one) => [one.id, `${one.title} ${one.text}`]))
    for (const { kind, question, golden_answers: golds, evidence, weak_answer: weak } of generateQuestions(
      source,
      70,
    )) {
      const texts = evidence.map((id) => normaliseAnswer(passages.get(id) ?? ''))
      const gold = normaliseAnswer(golds[0] ?? '')
      expect(texts.some((text) => ` ${text} `.includes(` ${gold} `))).toBe(true)
      if (kind.startsWith('bridge')) expect(texts.at(-1)).toContain(gold)
      if (kind !== 'comparison') expect(normaliseAnswer(question)).not.toContain(gold)
      expect(golds.map(normaliseAnswer)).not.toContain(normaliseAnswer(weak))
    }
  })

  test('is another one for another seed', () => {
    const titles = new Set(generatePassages(source).map(({ title }) => title))
    const others = generatePassages({ ...source, seed: 21 }).filter(({ title }) => titles.has(title))
    expect(others.length).toBeLessThan(titles.size / 50)
  })

  test('is smaller or larger on demand, and of a known version only', () => {
    expect(generatePassages({ ...source, passages: 300 }).length).toBeLessThan(320)
    expect(() => generatePassages({ ...source, version: 2 })).toThrow(/generator is not known/)
  })
})
