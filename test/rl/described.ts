/** Answers, held against the OpenAPI document that the same Paddock serves. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { expect } from 'vitest'

interface Content {
  readonly content: Readonly<Record<string, { readonly schema: object }>>
}

export interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: Content & { readonly required: boolean }
  readonly responses: Readonly<Record<string, Content>>
}

export interface OpenApi {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

export class Described {
  readonly document: OpenApi
  // The document's components are no keyword of a schema.
  readonly #ajv = new Ajv2020({ allErrors: true, strict: false })
  readonly #checks = new Map<string, ValidateFunction>()

  constructor(document: OpenApi) {
    this.document = document
  }

  /** Fails where the document has no such route, status or shape. */
  holds(method: string, asked: string, status: number, body: unknown): void {
    const path = this.#pathOf(asked.split('?')[0] ?? '')
    const responses = this.document.paths[path]?.[method.toLowerCase()]?.responses ?? {}
    const code = responses[status] === undefined && status >= 400 ? 'default' : `${status}`
    const what = `${method} ${path} ${code}`
    const schema = responses[code]?.content['application/json']?.schema
    expect(schema, `${what} is not described`).toBeDefined()
    const { components } = this.document
    const check = this.#checks.get(what) ?? this.#ajv.compile({ ...schema, components })
    this.#checks.set(what, check)
    const faults = check(body) ? '' : this.#ajv.errorsText(check.errors)
    expect(faults, `${what} is described otherwise: ${JSON.stringify(body).slice(0, 500)}`).toBe('')
  }

  #pathOf(asked: string): string {
    const paths = Object.keys(this.document.paths)
    const found =
      paths.find((path) => path === asked) ??
      paths.find((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(asked))
    expect(found, `${asked} is not described`).toBeDefined()
    return found ?? ''
  }
}
