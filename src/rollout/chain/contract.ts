/** Tasks one after the other, where a folder of files goes from the box of one to that of the next. */
export interface ChainSpec {
  readonly name: string
  /**
   * Who goes on with which library. `shared`: all members of a link with that of one member of the link before, the best and of those the first.
   * `parallel`: each member with its own; those whose libraries are equal are one group.
   */
  readonly libraries: 'shared' | 'parallel'
  /** How much of a reward a library earns that later links use: added is this, times the share of later links that were solved with a file of it. 0: nothing. */
  readonly credit: number
}
