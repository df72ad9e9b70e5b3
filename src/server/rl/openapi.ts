import { z } from 'zod'
import { nothing, type RlApi, type RlRoute } from './api.ts'

/** Serves the description of all routes of `api`, itself among them. */
export function describeRoutes(api: RlApi): void {
  let document: ReturnType<typeof openApiOf> | null = null
  const about = { name: 'openApi', says: 'This document', answer: z.looseObject({ openapi: z.string() }) }
  api.add('get', '/openapi.json', about, () => {
    document ??= openApiOf(api.routes)
    return Promise.resolve(document)
  })
}

/** An OpenAPI 3.1 document, whose schemas are JSON Schema 2020-12. */
function openApiOf(routes: readonly RlRoute[]) {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method]: operationOf(route) }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: "The trainer's routes of Paddock",
      version: '1',
      description: 'What each key means is told in docs/reference/rl.md, codes of errors in docs/reference/errors.md.',
    },
    servers: [{ url: '/rl/v1' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: schemaOf(failure, 'output') },
    },
  }
}

const failure = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    family: z.enum(['request', 'engine', 'infra', 'agent']),
    message: z.string(),
    fix: z.string(),
    data: z.record(z.string(), z.unknown()),
  }),
})

function operationOf({ name, says, path, query, body, lines, status, answer, types, refusals }: RlRoute) {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, part]) => ({
    name: part,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const asked = schemaOf(query ?? nothing, 'input')
  const required: readonly string[] = asked.required ?? []
  const inQuery = Object.entries(asked.properties ?? {}).map(([key, schema]) => ({
    name: key,
    in: 'query',
    required: required.includes(key),
    schema,
  }))
  const held = Object.entries(refusals).map(([code, more]) => [
    code,
    { description: 'Refused', content: json(schemaOf(failure.extend(more.shape), 'output')) },
  ])
  return {
    operationId: name,
    summary: says,
    parameters: [...inPath, ...inQuery],
    ...(body === null ? {} : { requestBody: requestOf(body, lines) }),
    responses: {
      [status]: { description: says, content: contentOf(types, answer) },
      ...Object.fromEntries(held),
      default: { description: 'Refused', content: json({ $ref: '#/components/schemas/Error' }) },
    },
  }
}

function requestOf(body: z.ZodType, lines: boolean) {
  const schema = schemaOf(body, 'input')
  const required = (schema.required ?? []).length > 0
  const byLine = lines ? { 'application/x-ndjson': { schema: { type: 'string' } } } : {}
  return { required, content: { ...json(schema), ...byLine } }
}

/** What is no JSON has no schema here: the reference tells its shape. */
function contentOf(types: readonly string[], answer: z.ZodType) {
  const others = types.map((type) => [type, { schema: { type: 'string' } }])
  const isJson = types.includes('application/json')
  return { ...Object.fromEntries(others), ...(isJson ? json(schemaOf(answer, 'output')) : {}) }
}

function json(schema: unknown) {
  return { 'application/json': { schema } }
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io })
  return rest
}
