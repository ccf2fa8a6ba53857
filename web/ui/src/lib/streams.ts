// The streams of records and models, as lines of a table. The stream of events is in stream.ts.
import type {Stream} from '../api/schema'

export type State = 'open' | 'suspended' | 'waiting' | 'failing' | 'idle'

// appsOf are the apps that predict the records of a stream that name none.
export const appsOf = ({app}: Stream): string[] => (app ? app.split(',').map((one) => one.trim()) : [])

// stateOf says whether a stream takes records: it waits while an app of its own is not registered, fails while there is something
// that it cannot do, and is idle where no process serves it. Without apps that is not known.
export function stateOf(stream: Stream, apps: ReadonlyMap<string, unknown> | null): State {
  const {suspension, now} = stream
  if (suspension) return 'suspended'
  if (apps && !appsOf(stream).every((app) => apps.has(app))) return 'waiting'
  if (!now) return 'idle'
  return now.conditions.length > 0 ? 'failing' : 'open'
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
