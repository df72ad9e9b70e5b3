export { nemoRlExporter } from './nemo-rl.ts'
