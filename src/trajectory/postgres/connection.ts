/** One connection, inside a transaction. */
export interface Connection {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
}
