// The streams of records and models, as lines of a table. The stream of events is in stream.ts.
import type {Stream} from '../api/types'

export type State = 'open' | 'suspended' | 'waiting'

// stateOf says whether a stream takes records, as far as the catalog decides: it waits while its app is not registered.
// Without apps that is not known.
export function stateOf({app, suspension}: Stream, apps: ReadonlyMap<string, unknown> | null): State {
  if (suspension) return 'suspended'
  return app && apps && !apps.has(app) ? 'waiting' : 'open'
}

// matches says whether a stream has a text in its name, in that of its app, or in those of what it reads and writes.
export function matches({name, app = '', input, output, dead_letter}: Stream, text: string): boolean {
  const needle = text.trim().toLowerCase()
  return [name, app, ...input, output, dead_letter].some((of) => of.toLowerCase().includes(needle))
}

// brief is a list with only its first few, and how many more there are.
export function brief(names: readonly string[], most = 2): string {
  const rest = names.length - most
  return names.slice(0, most).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}
