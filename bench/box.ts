/**
 * What a box costs; the measurement itself is part of the product (`paddock bench box`).
 *
 *   node bench/box.ts [--rounds 200] [--json]
 */
import { parseArgs } from 'node:util'
import { benchBox, describeFigure } from '../src/cli/bench/box.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '200' }, json: { type: 'boolean' } } })
const result = await benchBox(Number(values.rounds))
if (values.json) console.log(JSON.stringify(result, null, 2))
else for (const [name, value] of Object.entries(result)) console.log(name.padEnd(20), describeFigure(value))
