export { dpoExporter } from './dpo.ts'
export { preferenceLine } from './pair.ts'
