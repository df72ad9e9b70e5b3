import { Option } from 'commander'
import type { Config, ConfigInput } from '../config/index.ts'

export type PublicNetwork = Config['tasks']['publicNetwork']

/** `--public-network`, of all commands that read tasks. */
export function publicNetworkOption(): Option {
  return new Option(
    '--public-network <choice>',
    'terminal tasks that ask for the public internet: refuse them, run them without any network, or open it (default: tasks.publicNetwork)',
  ).choices(['refuse', 'without', 'open'])
}

/** What that option changes of the configuration. */
export function publicNetworkOf({ publicNetwork }: { readonly publicNetwork?: PublicNetwork }): ConfigInput {
  return publicNetwork === undefined ? {} : { tasks: { publicNetwork } }
}
