/** A request of a page, as the host sees it. */
export interface SiteRequest {
  readonly method: string
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

export interface SiteResponse {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Each becomes a `Set-Cookie` of its own. */
  readonly cookies?: readonly string[]
  readonly body?: string | Uint8Array
}

/**
 * What the pages of a task are served by, on the host: requests of the browser are answered over its debugging pipe, so
 * that no socket of the box leads to them and no program in the box can ask in the browser's name.
 */
export interface Site {
  /** Where the browser starts. */
  readonly start: string
  /** Null: this address is not part of the task. */
  serve(request: SiteRequest): Promise<SiteResponse | null> | SiteResponse | null
}

/** The answer to what is not part of the task. */
export function unreachable(url: URL): SiteResponse {
  return {
    status: 502,
    headers: { 'content-type': 'text/html; charset=utf-8' },
    body: `<!doctype html><title>Not reachable</title><h1>Not reachable</h1><p>${url.host.replaceAll(/[^\w.:-]/g, '')} is not part of this task.</p>`,
  }
}
