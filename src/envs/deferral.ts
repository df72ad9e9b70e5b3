/** How a call of a tool is answered later. */
export interface Deferral {
  /** `done`: when its work is; else after so many further calls of any tools, and not before its work is done. */
  readonly after: 'done' | { readonly calls: number }
  /** `asked`: the agent asks for it with `get_result`; `told`: it stands behind what the next call of any tool says. */
  readonly comes: 'asked' | 'told'
  /** It never comes: once it is due, the agent is told that it is lost, as a timeout. Its work is not done. */
  readonly lost?: true
  /** Work that takes longer is given up, and the agent is told so, as a timeout. Default: the agent's own time. */
  readonly withinMs?: number
}
