import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { SchemaElement } from 'hyparquet-writer'
import type { SinkFile } from '../contract.ts'

/** Types of columns that the exporters use. `list` columns hold arrays without nulls. */
export type ColumnType =
  | 'string'
  | 'json'
  | 'int32'
  | 'int64'
  | 'double'
  | 'list<int32>'
  | 'list<float>'
  | 'list<string>'

/** One column: name, type, whether a value may be null. */
export interface Column {
  readonly name: string
  readonly type: ColumnType
  readonly nullable?: boolean
}

/** A cell as the writer takes it. */
export type Cell = string | number | bigint | null | readonly number[] | readonly string[]

/** A Parquet file that is written row group by row group: memory is bounded by one group. */
export class ParquetRows {
  readonly #file: SinkFile
  readonly #columns: readonly Column[]
  readonly #bytes = new ByteWriter()
  readonly #writer: ParquetWriter
  #batch: Cell[][] = []

  constructor(file: SinkFile, columns: readonly Column[], createdBy: string) {
    this.#file = file
    this.#columns = columns
    this.#writer = new ParquetWriter({ writer: this.#bytes, schema: schemaOf(columns), createdBy })
    this.#batch = columns.map(() => [])
  }

  /** Rows that wait for their group. */
  get pending(): number {
    return this.#batch[0]?.length ?? 0
  }

  /** Adds a row, cells by column name. */
  add(row: Readonly<Record<string, Cell>>): void {
    for (const [index, column] of this.#columns.entries()) this.#batch[index]?.push(row[column.name] ?? null)
  }

  /** Writes what waits as one row group. */
  async flush(): Promise<void> {
    const rows = this.pending
    if (rows === 0) return
    // Offset and column indexes are for page skipping, which ragged training reads never do.
    const columnData = this.#columns.map(({ name }, index) => ({
      name,
      data: this.#batch[index] ?? [],
      offsetIndex: false,
    }))
    await this.#writer.write({ columnData, rowGroupSize: rows })
    this.#batch = this.#columns.map(() => [])
    await this.#drain()
  }

  /** Writes the last group and the footer. */
  async finish(): Promise<void> {
    await this.flush()
    await this.#writer.finish()
    await this.#drain()
  }

  async #drain(): Promise<void> {
    await this.#file.write(this.#bytes.getBytes().slice())
    this.#bytes.index = 0
  }
}

/** The schema tree in depth-first order; lists in the three-level form (parquet-format LogicalTypes.md, Lists). */
function schemaOf(columns: readonly Column[]): SchemaElement[] {
  const elements: SchemaElement[] = [{ name: 'root', num_children: columns.length }]
  for (const { name, type, nullable } of columns) {
    const repetition_type = nullable === true ? 'OPTIONAL' : 'REQUIRED'
    switch (type) {
      case 'string':
        elements.push({ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type })
        break
      case 'json':
        // Annotated as text, not JSON: pyarrow then gives `str`, which is what trainers json.loads.
        elements.push({ name, type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type })
        break
      case 'int32':
        elements.push({ name, type: 'INT32', repetition_type })
        break
      case 'int64':
        elements.push({ name, type: 'INT64', repetition_type })
        break
      case 'double':
        elements.push({ name, type: 'DOUBLE', repetition_type })
        break
      case 'list<int32>':
        elements.push(...listOf(name, { name: 'element', type: 'INT32', repetition_type: 'REQUIRED' }))
        break
      case 'list<float>':
        elements.push(...listOf(name, { name: 'element', type: 'FLOAT', repetition_type: 'REQUIRED' }))
        break
      case 'list<string>':
        elements.push(
          ...listOf(name, { name: 'element', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' }),
        )
        break
    }
  }
  return elements
}

function listOf(name: string, element: SchemaElement): readonly SchemaElement[] {
  return [
    { name, converted_type: 'LIST', repetition_type: 'REQUIRED', num_children: 1 },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    element,
  ]
}
