/** The OpenAPI document of `/rl/v1`, as a real `paddock serve` gives it. What it says of answers is held by every test here. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { type RlParts, rlRoutes } from '../../src/server/rl/index.ts'
import { useServe } from '../fixtures/use-serve.ts'
import type { OpenApi } from './described.ts'
import { servedBy } from './served.ts'
import { task, Trainer } from './trainer.ts'

let trainer: Trainer
let document: OpenApi

beforeAll(async () => {
  const serving = await useServe()
  trainer = new Trainer(serving, serving.token)
  document = (await trainer.description()).document
})

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  )

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    expect(await new Validator().validate({ ...structuredClone(document) })).toEqual({ valid: true })
    expect(document.openapi).toMatch(/^3\.1\./)
  })

  it('has every route that is served, and no other', () => {
    const served = servedBy(rlRoutes({} as RlParts)).map(([method, path]) => `${method} ${path}`)
    const described = operations().map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`)
    expect(served.length).toBeGreaterThan(25)
    expect(described.toSorted()).toEqual(served.toSorted())
    expect(new Set(operations().map(({ operation }) => operation.operationId)).size).toBe(served.length)
  })

  it('has schemas that stand for themselves, and every part of a path', () => {
    const ajv = new Ajv2020({ strictTuples: false })
    for (const { path, operation } of operations()) {
      const inPath = operation.parameters.flatMap((one) => (one.in === 'path' ? [one.name] : []))
      expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
      const body = operation.requestBody?.content['application/json']?.schema
      if (body !== undefined) expect(ajv.validateSchema(body), path).toBe(true)
    }
  })

  it('takes and refuses what the routes take and refuse', async () => {
    await trainer.ask('POST', '/runs', { run_id: 'openapi' })
    await trainer.attach('openapi')
    const ajv = new Ajv2020({ strictTuples: false })
    const cases: readonly (readonly [path: string, asked: string, body: object, isTaken: boolean])[] = [
      ['/runs', '/runs', { staleness: { max: 2, mode: 'cancel' } }, true],
      ['/runs', '/runs', { staleness: { max: -1 } }, false],
      ['/runs', '/runs', { rowmode: 'turns' }, false],
      [
        '/runs/{id}/groups',
        '/runs/openapi/groups',
        { groups: [{ group_id: 'openapi-g', task, n: 1, stop_when: 'deadline' }] },
        true,
      ],
      [
        '/runs/{id}/groups',
        '/runs/openapi/groups',
        { groups: [{ group_id: 'openapi-h', task, n: 1, stop_when: 'soon' }] },
        false,
      ],
      ['/runs/{id}/groups', '/runs/openapi/groups', { groups: [{ group_id: 'a b', task, n: 1 }] }, false],
      ['/runs/{id}/evals', '/runs/openapi/evals', { tasks: [task], k: 2 }, true],
      ['/runs/{id}/evals', '/runs/openapi/evals', { tasks: [task], k: 0 }, false],
      ['/runs/{id}/claims', '/runs/openapi/claims', { incarnation: 1 }, true],
      ['/runs/{id}/claims', '/runs/openapi/claims', {}, false],
    ]
    for (const [path, asked, body, isTaken] of cases) {
      const schema = document.paths[path]?.['post']?.requestBody?.content['application/json']?.schema ?? false
      expect(ajv.validate(schema, body), `${path} ${JSON.stringify(body)}`).toBe(isTaken)
      expect((await trainer.send('POST', asked, body)).ok, `${path} ${JSON.stringify(body)}`).toBe(isTaken)
    }
  })
})
