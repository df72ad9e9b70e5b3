/** What a proxy knows of the others behind the same listener. */
export interface ProxyShard {
  /** From 0. */
  readonly index: number
  readonly count: number
  /** Where another one serves requests of its sessions; null: it is not there now. */
  readonly origin: (index: number) => string | null
}
