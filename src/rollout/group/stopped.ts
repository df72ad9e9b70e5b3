/** Why an attempt was aborted that nobody wants more of. */
export class Stopped extends Error {
  /** The deadline of its group is over, so its verdict is not waited for either. */
  readonly atDeadline: boolean

  constructor(message: string, atDeadline = false) {
    super(message)
    this.atDeadline = atDeadline
  }
}

/** Its group needs no more of it. */
export function groupStopped(why: string): Stopped {
  return new Stopped(`its group stopped early (${why})`, why === 'deadline')
}
