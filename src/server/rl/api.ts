import { type Request, type Response, Router } from 'express'
import { z } from 'zod'
import { parse } from '../parse.ts'

/** A route as it is served and described. */
export interface RlRoute {
  readonly method: 'get' | 'post' | 'put' | 'delete'
  /** Below `/rl/v1`, with `:name` for what stands in it. */
  readonly path: string
  /** What programs made from the description call it. */
  readonly name: string
  /** One line. */
  readonly says: string
  /** Null: it takes none. */
  readonly body: z.ZodType | null
  /** The body may also come as lines of JSON. */
  readonly lines: boolean
  readonly query: z.ZodObject | null
  readonly status: number
  readonly answer: z.ZodType
  /** Of the answer: the first where nothing is asked for. */
  readonly types: readonly string[]
  /** Refusals that hold more than an error: what, by status. */
  readonly refusals: Readonly<Record<number, z.ZodObject>>
}

/** What a route takes. */
export interface RlAsked<Path extends string, Body, Query> {
  readonly request: Request
  readonly response: Response
  readonly params: Readonly<Record<ParamOf<Path>, string>>
  readonly body: Body
  readonly query: Query
}

/** Of a route whose handler has written its answer itself. */
export const written = Symbol('written')

/** Takes nothing. */
export const nothing = z.strictObject({})

type ParamOf<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer More}`
    ? Name | ParamOf<`/${More}`>
    : Rest
  : never

/** An answer as a handler gives it: nothing of it is written to. */
type Given<T> = T extends readonly unknown[] | object ? { readonly [Key in keyof T]: Given<T[Key]> } : T

interface About<Body, Query, Answer> {
  readonly name: string
  readonly says: string
  readonly body?: Body
  /** Reads a body that comes as lines of JSON. Left out: it may not. */
  readonly lines?: (text: string) => unknown
  readonly query?: Query
  /** Default 200. */
  readonly status?: number
  readonly answer: Answer
  readonly types?: readonly string[]
  readonly refusals?: RlRoute['refusals']
}

/** Routes that say what they take and answer: what is described is what is parsed, and answers fit by their types. */
export class RlApi {
  readonly router = Router()
  readonly #routes: RlRoute[] = []

  get routes(): readonly RlRoute[] {
    return this.#routes
  }

  /** Serves a route, and describes it. */
  add<
    const Path extends string,
    Answer extends z.ZodType,
    Body extends z.ZodType = z.ZodType<undefined>,
    Query extends z.ZodObject = typeof nothing,
  >(
    method: RlRoute['method'],
    path: Path,
    about: About<Body, Query, Answer>,
    handle: Handle<Path, Body, Query, Answer>,
  ): void {
    const { name, says, body, query, answer, status = 200, types = ['application/json'], refusals = {} } = about
    const read = ({ body: came = {} }: Request): unknown =>
      typeof came === 'string' && about.lines !== undefined ? about.lines(came) : came
    this.#routes.push({
      method,
      path,
      name,
      says,
      body: body ?? null,
      lines: about.lines !== undefined,
      query: query ?? null,
      status,
      answer,
      types,
      refusals,
    })
    this.router[method](path, async (request, response) => {
      const given = await handle({
        request,
        response,
        // Express has one for each name in the path.
        params: request.params as Record<ParamOf<Path>, string>,
        // Where none is described the handler's type has none.
        body: (body === undefined ? undefined : parse(body, read(request), 'body')) as z.output<Body>,
        query: (query === undefined ? {} : parse(query, request.query, 'query')) as z.output<Query>,
      })
      if (given !== written) response.status(status).json(given)
    })
  }
}

type Handle<Path extends string, Body extends z.ZodType, Query extends z.ZodType, Answer extends z.ZodType> = (
  asked: RlAsked<Path, z.output<Body>, z.output<Query>>,
) => Promise<Given<z.input<Answer>> | typeof written>
