export { skyrlExporter } from './skyrl.ts'
