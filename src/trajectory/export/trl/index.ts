export { trlExporter } from './trl.ts'
