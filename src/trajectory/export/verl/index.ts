export { verlExporter } from './verl.ts'
