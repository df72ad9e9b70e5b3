/** The ids of a prompt and their JSON text, which several requests of a call carry: made once, or cut from a reply. */
export class PromptIds {
  readonly ids: Int32Array
  private known: string | Buffer | null

  /** `text`: the array as somebody wrote it already. */
  constructor(ids: Int32Array, text: Buffer | null = null) {
    this.ids = ids
    this.known = text
  }

  /** An array of numbers as JSON. */
  get text(): string {
    if (typeof this.known !== 'string') this.known = this.known?.toString('latin1') ?? `[${this.ids.join()}]`
    return this.known
  }
}
